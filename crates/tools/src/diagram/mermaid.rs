//! Mermaid, drawn by this executable in a process of its own.
//!
//! The drawing library may recurse deeply, panic, or use unlimited time and memory: in some charts a
//! few digits set the size of the picture. So the `draw` subcommand draws (`draw.rs`). It has no
//! access to files, little memory and time, and is ended with its call.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use quintet_kernel::port::ToolContext;

use super::draw::{self, BAD_SOURCE, MEMORY, PROCESSOR, TIMEOUT};
use super::{checked, quiet, text};
use crate::run::{End, Finished, Runner};

/// The kernel takes no longer argument than twice this.
const ARGUMENT_BYTES: usize = 64 * 1024;
/// Exit codes of the supervisor and of a drawing process that could not be confined.
const NOT_RUN: [i32; 3] = [125, 126, 127];
/// Signals that end a process: out of memory or stack, and out of processor time.
const ABORTED: i32 = 128 + libc::SIGABRT;
const OUT_OF_TIME: [i32; 2] = [128 + libc::SIGXCPU, 128 + libc::SIGKILL];

/// A checked picture of this source; nothing if the call was cancelled.
pub(crate) async fn draw(
    runner: &Runner,
    context: &ToolContext,
    source: &str,
) -> Result<Option<String>, String> {
    let args = arguments(text(source)?);
    let finished = runner.run_own(args, TIMEOUT, &quiet(context)).await;
    let finished = finished.map_err(|error| error.to_string())?;
    checked(picture(&finished)?).await
}

/// The source is an argument, because stdin is the supervisor's.
fn arguments(source: &str) -> Vec<OsString> {
    let pieces = source.as_bytes().chunks(ARGUMENT_BYTES).map(OsStr::from_bytes);
    [draw::SUBCOMMAND, "--"]
        .map(OsStr::new)
        .into_iter()
        .chain(pieces)
        .map(OsStr::to_owned)
        .collect()
}

fn picture(finished: &Finished) -> Result<Option<String>, String> {
    let said = || finished.stderr.text().trim().to_owned();
    match finished.end {
        End::Exited(0) => {
            Ok(Some(String::from_utf8_lossy(&finished.stdout.content()).into_owned()))
        }
        End::Exited(code) if code == i32::from(BAD_SOURCE) => Err(said()),
        End::Exited(code) if NOT_RUN.contains(&code) => {
            Err(format!("nothing was drawn: {}", said()))
        }
        End::Exited(code) => Err(broken_off(code)),
        End::TimedOut(after) => Err(format!("drawing took longer than {}s", after.as_secs())),
        End::Cancelled(_) => Ok(None),
    }
}

/// The error for a source, from the exit code of the drawing.
fn broken_off(code: i32) -> String {
    let why = match code {
        ABORTED => format!("it takes more than {} MiB of memory, or goes too deep", MEMORY >> 20),
        code if OUT_OF_TIME.contains(&code) => {
            format!("it takes more than {PROCESSOR}s of processor time")
        }
        _ => "the drawing broke off".to_owned(),
    };
    format!("the diagram cannot be drawn: {why}")
}
