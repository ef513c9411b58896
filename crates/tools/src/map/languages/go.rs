//! Go.

use super::{Definition, Family, Language, Reference, any, capital, define, within};

pub(super) static GO: Language = Language {
    extensions: &["go"],
    family: Family::Go,
    grammar: || tree_sitter_go::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    references: &REFERENCES,
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

const REFERENCES: [Reference; 5] = [
    any("type_identifier"),
    capital("identifier"),
    within("identifier", &["call_expression"]),
    within("field_identifier", &["selector_expression", "call_expression"]),
    capital("field_identifier"),
];
