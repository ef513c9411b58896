//! JavaScript, and what TypeScript has in common with it.

use super::{Definition, Family, Language, Reference, When, capital, define, within};

pub(super) static JAVASCRIPT: Language = Language {
    extensions: &["js", "jsx", "mjs", "cjs"],
    family: Family::JavaScript,
    grammar: || tree_sitter_javascript::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    references: &REFERENCES,
    classes: &[],
};

pub(super) const FUNCTIONS: [&str; 3] =
    ["arrow_function", "function_expression", "generator_function"];

/// A variable of the module: the root, perhaps an export, a declaration, the variable.
pub(super) const TOP: When = When::Within(3);

const DEFINITIONS: [Definition; 7] = [
    define("function_declaration", "function", "name"),
    define("generator_function_declaration", "function", "name"),
    define("class_declaration", "class", "name"),
    define("method_definition", "method", "name"),
    define("variable_declarator", "function", "name").when(When::Is("value", &FUNCTIONS)),
    define("assignment_expression", "function", "left").when(When::Is("right", &FUNCTIONS)),
    define("variable_declarator", "variable", "name").when(TOP),
];

const REFERENCES: [Reference; 6] = [
    capital("identifier"),
    within("identifier", &["call_expression"]),
    within("identifier", &["new_expression"]),
    within("identifier", &["import_specifier"]).field("name"),
    within("identifier", &["class_heritage"]),
    within("property_identifier", &["member_expression", "call_expression"]),
];
