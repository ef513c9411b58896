//! How Python is skimmed and read.

use super::{Definition, Family, Functions, Language, Lexis, When, define};

pub(super) static PYTHON: Language = Language {
    extensions: &["py", "pyi"],
    family: Family::Python,
    grammar: || tree_sitter_python::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["#"],
        block_comment: None,
        long_quotes: &["\"\"\"", "'''"],
        quotes: b"\"'",
        announcing: &["def"],
        defining: &["class"],
        topmost: &[],
        embodying: &[],
        functions: Functions::Announced,
        assigns: true,
    },
    classes: &["class_definition"],
};

const DEFINITIONS: [Definition; 4] = [
    define("function_definition", "function", "name"),
    define("class_definition", "class", "name"),
    define("type_alias_statement", "type", "left"),
    // A variable of the module: the root, a statement, the assignment.
    define("assignment", "variable", "left").when(When::Within(2)),
];
