//! Draws diagrams as SVG that is safe to show.
//!
//! Mermaid is drawn by this executable in a process of its own (`mermaid.rs`, `draw.rs`), Graphviz by
//! its program in the sandbox (`graphviz.rs`): no library draws more than a few of its graph
//! types. Every picture is checked before it is kept (`svg.rs`).

use std::sync::Arc;

use quintet_kernel::port::{ToolContext, ToolProgress};

use crate::blocking;

mod draw;
pub(crate) mod graphviz;
pub(crate) mod mermaid;
mod svg;

pub use draw::main;

/// The languages of diagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiagramLanguage {
    Mermaid,
    Graphviz,
}

impl DiagramLanguage {
    /// The language of that name; without a name, the one that the source looks like.
    pub(crate) fn of(name: Option<&str>, source: &str) -> Self {
        match name {
            Some("mermaid") => Self::Mermaid,
            Some(_) => Self::Graphviz,
            None if is_graphviz(source) => Self::Graphviz,
            None => Self::Mermaid,
        }
    }
}

/// `graph` begins a diagram in both; a brace follows soon only in Graphviz.
fn is_graphviz(source: &str) -> bool {
    let is_comment = |line: &&str| line.is_empty() || line.starts_with(['#', '/']);
    let start = source.lines().map(str::trim).find(|line| !is_comment(line)).unwrap_or_default();
    let word = start.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    match word.to_ascii_lowercase().as_str() {
        "digraph" | "strict" => true,
        "graph" => start.contains('{') || start == "graph",
        _ => false,
    }
}

/// The source, if a command line can hold it.
fn text(source: &str) -> Result<&str, String> {
    if source.contains('\0') {
        return Err("invalid input: /source has a character that no text has (U+0000)".to_owned());
    }
    Ok(source)
}

/// The picture, if there is one, once it was looked through.
async fn checked(picture: Option<String>) -> Result<Option<String>, String> {
    let Some(picture) = picture else { return Ok(None) };
    blocking::run_to_end(move || svg::check(&picture).map(str::to_owned)).await.map(Some)
}

/// A context without progress output, because SVG source is not readable progress.
fn quiet(context: &ToolContext) -> ToolContext {
    ToolContext { progress: Arc::new(NoProgress), ..context.clone() }
}

struct NoProgress;

impl ToolProgress for NoProgress {
    fn report(&self, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_its_first_words() {
        for source in
            ["digraph{}", "\n// x\nstrict graph g {", "graph {a--b}", "graph g {", "graph\n{"]
        {
            assert_eq!(DiagramLanguage::of(None, source), DiagramLanguage::Graphviz, "{source}");
        }
        for source in ["graph TD\na-->b{x}", "flowchart LR", "%% x\npie", "", "sequenceDiagram"] {
            assert_eq!(DiagramLanguage::of(None, source), DiagramLanguage::Mermaid, "{source}");
        }
        assert_eq!(DiagramLanguage::of(Some("dot"), "flowchart LR"), DiagramLanguage::Graphviz);
    }
}
