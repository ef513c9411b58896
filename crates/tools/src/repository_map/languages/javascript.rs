//! JavaScript, and what TypeScript has in common with it.

use super::{Definition, Family, Functions, Language, Lexis, When, define};

pub(super) static JAVASCRIPT: Language = Language {
    extensions: &["js", "jsx", "mjs", "cjs"],
    family: Family::JavaScript,
    grammar: || tree_sitter_javascript::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        long_quotes: &["`"],
        quotes: b"\"'",
        announcing: &["function"],
        defining: &["class"],
        topmost: &["const", "let", "var"],
        embodying: &[],
        functions: Functions::Braced,
        assigns: false,
    },
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
