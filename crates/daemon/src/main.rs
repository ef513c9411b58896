//! The `quintet` program: reads its options, builds the parts, joins them, runs and shuts down.

mod accounts;
mod assemble;
mod attach;
mod audit;
mod chat;
mod cli;
mod console;
mod doctor;
mod export;
mod import;
mod installs;
mod keyring;
mod keys;
mod listen;
mod mcp;
mod models;
mod open_files;
mod options;
mod runs;
mod senses;
mod serve;
mod sessions;
mod telemetry;
mod tools;
mod trial;
mod vision;
mod voice;
mod worker;

use std::io;
use std::iter::once;
use std::process::ExitCode;

use clap::Parser;
use quintet_dialects::EDITORS;
use quintet_tools::supervisor::Leash;
use quintet_tools::{diagram, sandbox, supervisor};

use crate::cli::{Cli, Verb};

fn main() -> ExitCode {
    quintet_allocator::bound_free_memory();
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Doctor(flags) => doctor::main(&flags),
        Verb::Supervise { scratch, namespaces, confined, forward, argv } => {
            let namespaces = namespaces.as_deref().and_then(sandbox::Network::parse);
            let leash = if forward { Leash::Forwarded } else { Leash::Held };
            let setup = supervisor::Setup { scratch, namespaces, confined, leash };
            return supervisor::main(setup, argv);
        }
        Verb::Confine { policy, argv } => return sandbox::main(once(policy).chain(argv)),
        Verb::Chat(asked) => chat::main(asked),
        Verb::Console(flags) => console::main(&flags).map(well),
        Verb::Draw { source } => return diagram::main(source),
        Verb::Serve { flags, dev, detached } => serve::main(&flags, dev, detached).map(well),
        Verb::Acp(flags) => attach::main(&flags, EDITORS).map(well),
        Verb::Import(asked) => import::main(&asked).map(well),
        Verb::Config(flags) => options::print(&flags).map(well),
        Verb::Export { flags, to } => export::main(&flags, &to).map(well),
        Verb::Try { flags, trial } => trial::main(&flags, &trial).map(well),
        Verb::Models { verb, flags, all } => models::main(verb, &flags, all).map(well),
        Verb::Installs { verb, flags } => installs::main(verb, &flags).map(well),
        Verb::Sessions { verb } => sessions::main(verb).map(well),
        Verb::Keys { verb } => keys::main(verb).map(well),
        Verb::Ocr { flags, file, json } => senses::ocr(&flags, &file, json).map(well),
        Verb::Transcribe { flags, file } => voice::transcribe(&flags, &file).map(well),
        Verb::Listen(asked) => listen::main(&asked).map(well),
        Verb::Say { flags, text, out } => voice::say(&flags, &text, &out).map(well),
        Verb::Embed { flags, texts } => senses::embed(&flags, texts).map(well),
        Verb::Describe { flags, file, json } => vision::describe(&flags, &file, json).map(well),
        Verb::Runs { verb } => runs::main(verb),
        Verb::Mcp { verb: Some(verb), .. } => mcp::main(verb).map(well),
        Verb::Mcp { verb: None, flags } => attach::main(&flags, mcp::LISTENER).map(well),
        Verb::Worker(asked) => worker::main(*asked).map(well),
        Verb::Tools { flags, schema } => tools::list(&flags, schema).map(well),
    };
    match done {
        Ok(code) => code,
        Err(error) if is_closed_output(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quintet: {error:#}");
            attach::exit_code(&error)
        }
    }
}

/// True if the reader of standard output has left, as `head` does once it has enough.
fn is_closed_output(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn well((): ()) -> ExitCode {
    ExitCode::SUCCESS
}
