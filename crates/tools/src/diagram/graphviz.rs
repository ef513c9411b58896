//! Graphviz, drawn by its program in the sandbox.

use std::path::Path;
use std::time::Duration;

use quintet_kernel::port::ToolContext;

use super::{checked, quiet, text};
use crate::run::{End, Finished, Job, Runner};

const TIMEOUT: Duration = Duration::from_secs(30);
const MISSING: &str = "Graphviz is not installed, so nothing was drawn: install its package \
                       `graphviz`, which brings the program `dot`, or draw with Mermaid";

/// A checked picture of this source; nothing if the call was cancelled.
pub(crate) async fn draw(
    runner: &Runner,
    workspace: &Path,
    context: &ToolContext,
    source: &str,
) -> Result<Option<String>, String> {
    let command = command(source)?;
    let job = Job { command: &command, workspace, timeout: TIMEOUT };
    let finished = runner.run(job, &quiet(context)).await.map_err(|error| error.to_string())?;
    checked(picture(&finished)?).await
}

fn picture(finished: &Finished) -> Result<Option<String>, String> {
    let complaint = finished.stderr.text();
    match finished.end {
        End::Exited(0) => {
            Ok(Some(String::from_utf8_lossy(&finished.stdout.content()).into_owned()))
        }
        End::Exited(127) => Err(MISSING.to_owned()),
        End::Exited(code) if complaint.trim().is_empty() => Err(format!("dot: exit code {code}")),
        End::Exited(_) => Err(format!("dot: {}", complaint.trim())),
        End::TimedOut(after) => Err(format!("dot: timed out after {}s", after.as_secs())),
        End::Cancelled(_) => Ok(None),
    }
}

/// The command line, with the source as a here-document.
fn command(source: &str) -> Result<String, String> {
    let source = text(source)?;
    let mut end = "END".to_owned();
    while source.lines().any(|line| line == end) {
        end.push('_');
    }
    Ok(format!("dot -Tsvg <<'{end}'\n{source}\n{end}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_cannot_end_itself() {
        let got = command("digraph {\nEND\nEND_\nrm -rf /\n}").expect("it is a text");
        assert!(got.starts_with("dot -Tsvg <<'END__'\ndigraph {\n"), "{got}");
        assert!(got.ends_with("\n}\nEND__\n"), "{got}");
        assert!(command("a\0b").is_err());
    }
}
