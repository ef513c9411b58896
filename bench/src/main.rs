//! Measures Quintet against a bare parsing proxy on the same fake model, in one run.
//!
//! `quintet-bench [--quick] [--daemon PATH] [--turns N] [--set KEY=VALUE] [NAME…]` prints one table; names are those of
//! [`measure::ALL`]. The model and the proxies are this same program in separate processes
//! (`quintet-bench model`, `quintet-bench proxy --model URL [--log FILE]`, `quintet-bench tool-server`), so
//! that the CPU time and memory of each can be measured. Nothing is asserted; people read the numbers.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench reads the real clock and starts the programs that it measures"
)]

mod child;
mod client;
mod clock;
mod http;
mod measure;
mod model;
mod proxy;
mod received;
mod rig;
mod script;
mod table;
mod tool_server;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};

use crate::measure::Plan;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quintet-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["tool-server"] => tool_server::serve(),
        ["model"] => one_thread()?.block_on(model::serve()),
        ["proxy", "--model", url] => many_threads()?.block_on(proxy::serve(url, None)),
        ["proxy", "--model", url, "--log", log] => {
            many_threads()?.block_on(proxy::serve(url, Some(log)))
        }
        _ => drive(&words),
    }
}

fn drive(words: &[&str]) -> Result<()> {
    let mut plan = Plan::default();
    let mut names = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--quick" => plan.quick = true,
            "--daemon" => plan.daemon = Some(words.next().context("--daemon PATH")?.into()),
            "--turns" => plan.turns = Some(words.next().context("--turns N")?.parse()?),
            "--set" => plan.set.push(words.next().context("--set KEY=VALUE")?.to_string()),
            name if measure::ALL.contains(&name) => names.push(name),
            other => bail!(
                "there is no {other:?}; there are --quick, --daemon PATH, --turns N (of `history`), --set KEY=VALUE (for the daemon) and {}",
                measure::ALL.join(" ")
            ),
        }
    }
    let names = if names.is_empty() { measure::ALL.to_vec() } else { names };
    one_thread()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        // If this ends early, the children are dropped and thereby killed.
        tokio::select! {
            done = measure::all(&names, &plan) => done,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}

fn many_threads() -> Result<Runtime> {
    Builder::new_multi_thread().enable_all().build().context("no runtime")
}

fn one_thread() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("no runtime")
}
