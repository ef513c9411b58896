//! How Go is skimmed and read.

use super::{Definition, Family, Functions, Language, Lexis, define};

pub(super) static GO: Language = Language {
    extensions: &["go"],
    family: Family::Go,
    grammar: || tree_sitter_go::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        long_quotes: &["`"],
        quotes: b"\"'",
        announcing: &["func"],
        defining: &["type"],
        topmost: &["const", "var"],
        embodying: &[],
        functions: Functions::Unindented,
        assigns: false,
    },
    classes: &[],
};

const DEFINITIONS: [Definition; 6] = [
    define("function_declaration", "function", "name"),
    define("method_declaration", "method", "name"),
    define("type_spec", "type", "name"),
    define("type_alias", "type", "name"),
    define("const_spec", "const", "name"),
    define("var_spec", "variable", "name"),
];
