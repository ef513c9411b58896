//! `quintet chat`: builds the client's settings from the command line and the environment.

use std::io::{IsTerminal, Read, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use quintet_chat::print::{Approvals, Ending, Output, OutputFormat, PrintRequest, print};
use quintet_chat::{Colours, Settings, interactive};

use crate::cli::Chat;
use crate::options;

/// Maximum length of standard input, in bytes; a message may have 10 MB.
const INPUT_BYTES_LIMIT: u64 = 8 * 1024 * 1024;
/// The exit code of an interrupted program.
const INTERRUPTED: u8 = 130;

pub(crate) fn main(arguments: Chat) -> Result<ExitCode> {
    let settings = settings(&arguments)?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match arguments.question {
        Some(text) => {
            let print_request = print_request(text, arguments.json, arguments.yes)?;
            let (mut answer, mut messages) = (stdout(), stderr());
            let output = Output { answer: &mut answer, messages: &mut messages };
            Ok(code(threads.block_on(print(&settings, &print_request, output))?))
        }
        None if !stdin().is_terminal() || !stdout().is_terminal() => {
            bail!("a conversation needs a terminal; `quintet chat -p QUESTION` does not")
        }
        None => {
            threads.block_on(interactive(&settings)).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
    }
}

fn code(ending: Ending) -> ExitCode {
    match ending {
        Ending::Answered => ExitCode::SUCCESS,
        Ending::Failed => ExitCode::FAILURE,
        Ending::Cancelled => INTERRUPTED.into(),
    }
}

fn print_request(text: String, json: bool, yes: bool) -> Result<PrintRequest> {
    let format = match (json, stdout().is_terminal()) {
        (true, _) => OutputFormat::Json,
        (false, true) => OutputFormat::Plain,
        (false, false) => OutputFormat::Text,
    };
    let approvals = if yes { Approvals::Approve } else { Approvals::Refuse };
    let added = if stdin().is_terminal() { String::new() } else { piped()? };
    let text = [text.trim(), added.trim_end()].into_iter().filter(|part| !part.is_empty());
    let text = text.collect::<Vec<_>>().join("\n\n");
    if text.is_empty() {
        bail!("the message is empty: give it after -p, or on standard input");
    }
    Ok(PrintRequest { text, format, approvals })
}

fn piped() -> Result<String> {
    let mut text = String::new();
    let read = stdin().lock().take(INPUT_BYTES_LIMIT + 1).read_to_string(&mut text);
    if read.context("standard input is not text")? as u64 > INPUT_BYTES_LIMIT {
        bail!("standard input is longer than {INPUT_BYTES_LIMIT} bytes");
    }
    Ok(text)
}

fn settings(arguments: &Chat) -> Result<Settings> {
    let environment = options::environment();
    // An empty variable counts as unset.
    let path = |name: &str| {
        let set = environment.iter().find(|(known, value)| known == name && !value.is_empty());
        set.map(|(_, value)| PathBuf::from(value))
    };
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")));
    let history = state.filter(|_| !arguments.no_history).map(|at| at.join("quintet/chat-history"));
    let colours = if path("NO_COLOR").is_some() { Colours::Off } else { Colours::On };
    Ok(Settings {
        socket: arguments.socket.clone(),
        runtime: path("XDG_RUNTIME_DIR").unwrap_or_else(|| "/tmp".into()),
        cwd: std::env::current_dir().context("the current directory is gone")?,
        shell: path("SHELL").map(|shell| shell.to_string_lossy().into_owned()),
        session: arguments.session.clone(),
        model: arguments.model.clone(),
        history,
        colours,
    })
}
