//! The languages a map is drawn of: one file of rows each.
//!
//! A new language is a file here, a line in [`ALL`] and its grammar in `Cargo.toml`.

use std::path::Path;
use std::sync::LazyLock;

use super::rules::Rules;

mod c;
mod cpp;
mod go;
mod java;
mod javascript;
mod python;
mod rust;
mod typescript;

/// The description of a language.
#[derive(Debug)]
pub(super) struct Language {
    /// How its files' names end.
    pub(super) extensions: &'static [&'static str],
    /// Languages of a family call each other's names.
    pub(super) family: Family,
    pub(super) grammar: fn() -> tree_sitter::Language,
    pub(super) definitions: &'static [Definition],
    pub(super) lexis: Lexis,
    /// Nodes inside of which a function is a method.
    pub(super) classes: &'static [&'static str],
}

/// Languages that call each other's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Family {
    C,
    Go,
    Java,
    JavaScript,
    Python,
    Rust,
}

/// A node that defines a symbol. The first row that fits a node counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) node: &'static str,
    pub(super) kind: &'static str,
    /// The field that has its name, or leads to it.
    pub(super) name: &'static str,
    pub(super) when: When,
}

/// Which nodes of a kind define something.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    Always,
    /// Nodes at most this far from the root.
    Within(usize),
    /// Nodes that have this field.
    Has(&'static str),
    /// Nodes whose field is a node of one of these kinds.
    Is(&'static str, &'static [&'static str]),
}

/// How a language is skimmed, to find the files worth parsing.
#[derive(Debug)]
pub(super) struct Lexis {
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<(&'static str, &'static str)>,
    /// What strings begin and end with that may go on over lines.
    pub(super) long_quotes: &'static [&'static str],
    /// What strings begin and end with that end where the line does.
    pub(super) quotes: &'static [u8],
    /// The words before the name of a function that is being defined.
    pub(super) announcing: &'static [&'static str],
    /// The words before another name that is being defined.
    pub(super) defining: &'static [&'static str],
    /// The words before a name that is of interest only if the line is not indented.
    pub(super) topmost: &'static [&'static str],
    /// Keywords before a name that is defined if a body follows, and used otherwise.
    pub(super) embodying: &'static [&'static str],
    pub(super) functions: Functions,
    /// True if an assignment at the start of a line defines a name.
    pub(super) assigns: bool,
}

/// How functions without a keyword are recognized: by the first name in a line before a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Functions {
    /// A word announces all of them.
    Announced,
    /// The line ends with a brace.
    Braced,
    /// As above, or the line is not indented and does not end with a semicolon.
    Unindented,
}

const fn define(node: &'static str, kind: &'static str, name: &'static str) -> Definition {
    Definition { node, kind, name, when: When::Always }
}

impl Definition {
    const fn when(self, when: When) -> Self {
        Self { when, ..self }
    }
}

static ALL: [&Language; 9] = [
    &rust::RUST,
    &python::PYTHON,
    &typescript::TYPESCRIPT,
    &typescript::TSX,
    &javascript::JAVASCRIPT,
    &go::GO,
    &java::JAVA,
    &c::C,
    &cpp::CPP,
];

static RULES: LazyLock<Vec<Rules>> =
    LazyLock::new(|| ALL.iter().map(|language| Rules::of(language)).collect());

/// Whether a file is written in one of the languages, going by its name.
pub(super) fn knows(path: &Path) -> bool {
    language(path).is_some()
}

/// The rules of the language that a file is written in, going by its name and, where that is not
/// enough, by its text.
pub(super) fn rules(path: &Path, text: &[u8]) -> Option<&'static Rules> {
    let mut language = language(path)?;
    if path.extension().is_some_and(|end| end == "h") && is_cpp(text) {
        language = &cpp::CPP;
    }
    RULES.iter().find(|rules| std::ptr::eq(rules.language, language))
}

fn language(path: &Path) -> Option<&'static Language> {
    let end = path.extension()?.to_str()?;
    ALL.into_iter().find(|language| language.extensions.contains(&end))
}

/// Whether a header has what only C++ has.
fn is_cpp(text: &[u8]) -> bool {
    let signs = ["\nclass ", "\nnamespace ", "\ntemplate", "\nusing ", "public:", "private:"];
    signs.iter().any(|sign| memchr::memmem::find(text, sign.as_bytes()).is_some())
}

#[cfg(test)]
mod tests;
