//! How Rust is skimmed and read.

use super::{Definition, Family, Functions, Language, Lexis, define};

pub(super) static RUST: Language = Language {
    extensions: &["rs"],
    family: Family::Rust,
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        long_quotes: &[],
        quotes: b"\"",
        announcing: &["fn"],
        defining: &["struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"],
        topmost: &[],
        embodying: &[],
        functions: Functions::Announced,
        assigns: false,
    },
    classes: &["impl_item", "trait_item"],
};

const DEFINITIONS: [Definition; 10] = [
    define("function_item", "function", "name"),
    define("function_signature_item", "function", "name"),
    define("struct_item", "struct", "name"),
    define("enum_item", "enum", "name"),
    define("union_item", "union", "name"),
    define("trait_item", "trait", "name"),
    define("type_item", "type", "name"),
    define("const_item", "const", "name"),
    define("static_item", "static", "name"),
    define("macro_definition", "macro", "name"),
];
