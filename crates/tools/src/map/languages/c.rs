//! C, and what C++ has in common with it.

use super::{Definition, Family, Language, Reference, When, any, capital, define, within};

pub(super) static C: Language = Language {
    extensions: &["c", "h"],
    family: Family::C,
    grammar: || tree_sitter_c::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    references: &REFERENCES,
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

const REFERENCES: [Reference; 3] =
    [any("type_identifier"), capital("identifier"), within("identifier", &["call_expression"])];
