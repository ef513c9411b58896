//! TypeScript, with and without JSX.

use super::javascript::{FUNCTIONS, TOP};
use super::{Definition, Family, Functions, Language, Lexis, When, define};

pub(super) static TYPESCRIPT: Language = Language {
    extensions: &["ts", "mts", "cts"],
    family: Family::JavaScript,
    grammar: || tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
    definitions: &DEFINITIONS,
    lexis: LEXIS,
    classes: &[],
};

pub(super) static TSX: Language = Language {
    extensions: &["tsx"],
    family: Family::JavaScript,
    grammar: || tree_sitter_typescript::LANGUAGE_TSX.into(),
    definitions: &DEFINITIONS,
    lexis: LEXIS,
    classes: &[],
};

const DEFINITIONS: [Definition; 13] = [
    define("function_declaration", "function", "name"),
    define("generator_function_declaration", "function", "name"),
    define("function_signature", "function", "name"),
    define("class_declaration", "class", "name"),
    define("abstract_class_declaration", "class", "name"),
    define("interface_declaration", "interface", "name"),
    define("type_alias_declaration", "type", "name"),
    define("enum_declaration", "enum", "name"),
    define("method_definition", "method", "name"),
    define("abstract_method_signature", "method", "name"),
    define("variable_declarator", "function", "name").when(When::Is("value", &FUNCTIONS)),
    define("assignment_expression", "function", "left").when(When::Is("right", &FUNCTIONS)),
    define("variable_declarator", "variable", "name").when(TOP),
];

const LEXIS: Lexis = Lexis {
    line_comments: &["//"],
    block_comment: Some(("/*", "*/")),
    long_quotes: &["`"],
    quotes: b"\"'",
    announcing: &["function"],
    defining: &["class", "interface", "type", "enum"],
    topmost: &["const", "let", "var"],
    embodying: &[],
    functions: Functions::Braced,
    assigns: false,
};
