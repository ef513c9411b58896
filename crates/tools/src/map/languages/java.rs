//! Java.

use super::{Definition, Family, Language, Reference, any, capital, define, within};

pub(super) static JAVA: Language = Language {
    extensions: &["java"],
    family: Family::Java,
    grammar: || tree_sitter_java::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    references: &REFERENCES,
    classes: &[],
};

const DEFINITIONS: [Definition; 7] = [
    define("class_declaration", "class", "name"),
    define("interface_declaration", "interface", "name"),
    define("enum_declaration", "enum", "name"),
    define("record_declaration", "record", "name"),
    define("annotation_type_declaration", "annotation", "name"),
    define("method_declaration", "method", "name"),
    define("constant_declaration", "const", "declarator"),
];

const REFERENCES: [Reference; 3] = [
    any("type_identifier"),
    capital("identifier"),
    within("identifier", &["method_invocation"]).field("name"),
];
