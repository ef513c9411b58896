//! The `quintet` program: reads its options, builds the parts, joins them, runs and shuts down.

mod assemble;
mod cli;
mod export;
mod models;
mod options;
mod serve;
mod telemetry;
mod tools;

use std::iter::once;
use std::process::ExitCode;

use clap::Parser;
use quintet_tools::{sandbox, supervisor};

use crate::cli::{Cli, Verb};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Supervise { scratch, argv } => return supervisor::main(scratch, argv),
        Verb::Confine { policy, argv } => return sandbox::main(once(policy).chain(argv)),
        Verb::Serve(flags) => serve::main(&flags),
        Verb::Config(flags) => options::print(&flags),
        Verb::Export { flags, to } => export::main(&flags, &to),
        Verb::Models(verb) => models::main(verb),
        Verb::Tools { flags, schema } => tools::list(&flags, schema),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quintet: {error:#}");
            ExitCode::FAILURE
        }
    }
}
