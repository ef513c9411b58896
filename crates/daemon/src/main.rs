//! The `quintet` program: the daemon (`quintet serve`) and its command-line tools.
//!
//! [`options`] reads flags, environment, keyring and configuration file into `Options`; [`assemble`] builds the
//! store, the models, the tools and the runtime from them; [`serve`] binds the listeners of all protocols, serves
//! until a signal and shuts down in order. Every other module is a subcommand of [`cli`].
//!
//! ```text
//! flags + environment + file + keyring → Options → Assembly → Daemon: listeners, projections → shutdown
//! ```

mod accounts;
mod assemble;
mod attach;
mod audit;
mod browser;
mod chat;
mod cli;
mod console;
mod doctor;
mod eval;
mod export;
mod import;
mod installs;
mod keyring;
mod keys;
mod listen;
mod mcp;
mod migrate;
mod models;
mod nodes;
mod open_files;
mod options;
mod runs;
mod senses;
mod serve;
mod sessions;
mod storage;
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
use quintet_tools::supervisor::Control;
use quintet_tools::{diagram, sandbox, supervisor};

use crate::cli::{Cli, Verb};

fn main() -> ExitCode {
    quintet_allocator::bound_free_memory();
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Doctor(flags) => doctor::main(&flags),
        Verb::Supervise { scratch, namespaces, confined, forward, await_command, argv } => {
            let namespaces = namespaces.as_deref().and_then(sandbox::Network::parse);
            let control = match (forward, await_command) {
                (true, _) => Control::ForwardInput,
                (false, true) => Control::AwaitCommand,
                (false, false) => Control::HoldOpen,
            };
            let setup = supervisor::Setup { scratch, namespaces, confined, control };
            return supervisor::main(setup, argv);
        }
        Verb::Confine { await_command, policy, argv } => {
            return sandbox::main(once(policy).chain(argv), await_command);
        }
        Verb::Chat(asked) => chat::main(asked),
        Verb::Console(flags) => console::main(&flags).map(success),
        Verb::Draw { source } => return diagram::main(source),
        Verb::Serve { flags, dev, detached } => serve::main(&flags, dev, detached).map(success),
        Verb::Acp(flags) => attach::main(&flags, EDITORS).map(success),
        Verb::Eval(asked) => eval::main(&asked).map(success),
        Verb::Import(asked) => import::main(&asked).map(success),
        Verb::Migrate(asked) => migrate::main(&asked).map(success),
        Verb::Config(flags) => options::print(&flags).map(success),
        Verb::Export { flags, to } => export::main(&flags, &to).map(success),
        Verb::Try { flags, trial } => trial::main(&flags, &trial).map(success),
        Verb::Models { verb, flags, all } => models::main(verb, &flags, all).map(success),
        Verb::Installs { verb, flags } => installs::main(verb, &flags).map(success),
        Verb::Sessions { verb } => sessions::main(verb).map(success),
        Verb::Keys { verb } => keys::main(verb).map(success),
        Verb::Ocr { flags, file, json } => senses::ocr(&flags, &file, json).map(success),
        Verb::Transcribe { flags, file } => voice::transcribe(&flags, &file).map(success),
        Verb::Listen(asked) => listen::main(&asked).map(success),
        Verb::Say { flags, text, out } => voice::say(&flags, &text, &out).map(success),
        Verb::Embed { flags, texts } => senses::embed(&flags, texts).map(success),
        Verb::Describe { flags, file, json } => vision::describe(&flags, &file, json).map(success),
        Verb::Nodes { verb, flags } => nodes::main(verb, &flags).map(success),
        Verb::Runs { verb } => runs::main(verb),
        Verb::Mcp { verb: Some(verb), .. } => mcp::main(verb).map(success),
        Verb::Mcp { verb: None, flags } => attach::main(&flags, mcp::LISTENER).map(success),
        Verb::Worker(asked) => worker::main(*asked).map(success),
        Verb::Tools { flags, schema } => tools::list(&flags, schema).map(success),
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

/// True if the reader of standard output has closed it, as `head` does.
fn is_closed_output(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn success((): ()) -> ExitCode {
    ExitCode::SUCCESS
}
