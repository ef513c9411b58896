//! The subcommand that draws Mermaid and can do nothing else.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use mermaid_svg::{ParseError, RenderError};

use super::svg;
use crate::sandbox::{self, Limits};

/// The hidden subcommand of the executable that draws.
pub(super) const SUBCOMMAND: &str = "draw";
/// How long drawing may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);
/// Seconds of processor time that drawing may take.
pub(super) const PROCESSOR: u64 = 10;
/// Bytes of memory that may be used, the stack included.
pub(super) const MEMORY: u64 = 512 << 20;
/// Enough for the deepest source; only what is used of it is ever given.
const STACK: usize = 256 << 20;

/// Something is wrong with the source, not with the drawing of it.
pub(super) const BAD_SOURCE: u8 = 1;
/// The drawing panicked.
const BROKEN_OFF: u8 = 2;
/// The exit code if nothing was run, as with `env` and `timeout`.
const NOTHING_RAN: u8 = 125;

const KINDS: &str = "flowchart, sequenceDiagram, classDiagram, stateDiagram-v2, erDiagram, gantt, \
                     requirementDiagram, C4Context, C4Container, C4Component, C4Dynamic, \
                     C4Deployment, architecture-beta, gitGraph, mindmap, timeline, journey, kanban, \
                     pie, quadrantChart, sankey-beta, xychart-beta, radar-beta, treemap-beta, \
                     packet-beta, block-beta and zenuml";

/// Draws the source in these pieces and prints the picture.
///
/// Must be called before any other thread is started: Landlock and seccomp apply to the calling thread.
pub fn main(pieces: impl IntoIterator<Item = OsString>) -> ExitCode {
    let source = pieces.into_iter().flat_map(OsString::into_vec).collect();
    let source = String::from_utf8(source).map_err(|error| error.to_string());
    match source.and_then(shut_in) {
        Ok(source) => drawn(source),
        Err(why) => said(&why, NOTHING_RAN),
    }
}

/// Gives up all access except memory and CPU time; returns the source.
fn shut_in(source: String) -> Result<String, String> {
    let limits = Limits { memory: MEMORY, cpu_seconds: PROCESSOR, file: 0, ..Limits::default() };
    sandbox::withdraw(limits).map(|()| source)
}

fn drawn(source: String) -> ExitCode {
    let drawing = thread::Builder::new().stack_size(STACK).spawn(move || draw(&source));
    match drawing.map(thread::JoinHandle::join) {
        Ok(Ok(Ok(picture))) => match io::stdout().write_all(picture.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(BROKEN_OFF),
        },
        Ok(Ok(Err(why))) => said(&why, BAD_SOURCE),
        // The panic message does not help with the source.
        Ok(Err(_)) => ExitCode::from(BROKEN_OFF),
        Err(error) => said(&error.to_string(), NOTHING_RAN),
    }
}

fn draw(source: &str) -> Result<String, String> {
    let picture = mermaid_svg::render(source).map_err(explained)?;
    svg::check_size(&picture)?;
    Ok(picture)
}

fn explained(error: RenderError) -> String {
    match error {
        RenderError::Parse(ParseError::UnknownDiagramType(kind)) => {
            format!("unknown diagram type: {kind}; there are {KINDS}")
        }
        RenderError::Parse(error) => error.to_string(),
        error => error.to_string(),
    }
}

fn said(why: &str, code: u8) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(code)
}
