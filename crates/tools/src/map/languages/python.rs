//! Python.

use super::{Definition, Family, Language, Reference, When, capital, define, within};

pub(super) static PYTHON: Language = Language {
    extensions: &["py", "pyi"],
    family: Family::Python,
    grammar: || tree_sitter_python::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    references: &REFERENCES,
    classes: &["class_definition"],
};

const DEFINITIONS: [Definition; 4] = [
    define("function_definition", "function", "name"),
    define("class_definition", "class", "name"),
    define("type_alias_statement", "type", "left"),
    // A variable of the module: the root, a statement, the assignment.
    define("assignment", "variable", "left").when(When::Within(2)),
];

const REFERENCES: [Reference; 6] = [
    capital("identifier"),
    within("identifier", &["call"]),
    within("identifier", &["attribute", "call"]).field("attribute"),
    within("identifier", &["decorator"]),
    within("identifier", &["type"]),
    within("identifier", &["dotted_name", "import_from_statement"]),
];
