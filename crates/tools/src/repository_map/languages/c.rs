//! C, and what C++ has in common with it.

use super::{Definition, Family, Functions, Language, Lexis, When, define};

pub(super) static C: Language = Language {
    extensions: &["c", "h"],
    family: Family::C,
    grammar: || tree_sitter_c::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        long_quotes: &[],
        quotes: b"\"'",
        announcing: &[],
        defining: &["define"],
        topmost: &[],
        embodying: &["struct", "union", "enum"],
        functions: Functions::Unindented,
        assigns: false,
    },
    classes: &[],
};

/// `struct x` alone is a use; with a body it is a definition.
pub(super) const BODY: When = When::Has("body");

const DEFINITIONS: [Definition; 8] = [
    define("function_definition", "function", "declarator"),
    define("struct_specifier", "struct", "name").when(BODY),
    define("union_specifier", "union", "name").when(BODY),
    define("enum_specifier", "enum", "name").when(BODY),
    define("type_definition", "type", "declarator"),
    define("preproc_def", "macro", "name"),
    define("preproc_function_def", "macro", "name"),
    define("init_declarator", "variable", "declarator"),
];
