//! Rust.

use super::{Definition, Family, Language, Reference, any, capital, define, within};

pub(super) static RUST: Language = Language {
    extensions: &["rs"],
    family: Family::Rust,
    grammar: || tree_sitter_rust::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    references: &REFERENCES,
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

const REFERENCES: [Reference; 9] = [
    any("type_identifier"),
    capital("identifier"),
    within("identifier", &["call_expression"]),
    within("identifier", &["generic_function"]),
    within("identifier", &["scoped_identifier"]).field("name"),
    within("identifier", &["use_list"]),
    within("identifier", &["macro_invocation"]),
    within("field_identifier", &["field_expression", "call_expression"]),
    within("field_identifier", &["field_expression", "generic_function"]),
];
