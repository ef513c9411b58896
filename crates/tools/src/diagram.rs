//! Sources of diagrams, drawn as SVG that is safe to show.
//!
//! Mermaid is drawn here (`mermaid.rs`), Graphviz by its own program in the sandbox
//! (`graphviz.rs`): no library of today draws more than a few of its graphs. Whoever drew it, a
//! picture is only kept once it has been looked through (`svg.rs`).

pub(crate) mod graphviz;
pub(crate) mod mermaid;
pub(crate) mod svg;

/// The languages of diagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Mermaid,
    Graphviz,
}

impl Language {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_known_by_its_first_words() {
        for source in
            ["digraph{}", "\n// x\nstrict graph g {", "graph {a--b}", "graph g {", "graph\n{"]
        {
            assert_eq!(Language::of(None, source), Language::Graphviz, "{source}");
        }
        for source in ["graph TD\na-->b{x}", "flowchart LR", "%% x\npie", "", "sequenceDiagram"] {
            assert_eq!(Language::of(None, source), Language::Mermaid, "{source}");
        }
        assert_eq!(Language::of(Some("dot"), "flowchart LR"), Language::Graphviz);
    }
}
