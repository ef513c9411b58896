//! How Java is skimmed and read.

use super::{Definition, Family, Functions, Language, Lexis, define};

pub(super) static JAVA: Language = Language {
    extensions: &["java"],
    family: Family::Java,
    grammar: || tree_sitter_java::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        long_quotes: &["\"\"\""],
        quotes: b"\"'",
        announcing: &[],
        defining: &["class", "interface", "enum", "record"],
        topmost: &[],
        embodying: &[],
        functions: Functions::Braced,
        assigns: false,
    },
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
