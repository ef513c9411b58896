//! How C++ is skimmed and read.

use super::c::BODY;
use super::{Definition, Family, Functions, Language, Lexis, define};

pub(super) static CPP: Language = Language {
    extensions: &["cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "cu", "cuh"],
    family: Family::C,
    grammar: || tree_sitter_cpp::LANGUAGE.into(),
    definitions: &DEFINITIONS,
    lexis: Lexis {
        line_comments: &["//"],
        block_comment: Some(("/*", "*/")),
        long_quotes: &[],
        quotes: b"\"'",
        announcing: &[],
        defining: &["define", "using", "concept"],
        topmost: &[],
        embodying: &["struct", "union", "enum", "class"],
        functions: Functions::Unindented,
        assigns: false,
    },
    classes: &["class_specifier", "struct_specifier", "union_specifier"],
};

const DEFINITIONS: [Definition; 11] = [
    define("function_definition", "function", "declarator"),
    define("class_specifier", "class", "name").when(BODY),
    define("struct_specifier", "struct", "name").when(BODY),
    define("union_specifier", "union", "name").when(BODY),
    define("enum_specifier", "enum", "name").when(BODY),
    define("type_definition", "type", "declarator"),
    define("alias_declaration", "type", "name"),
    define("concept_definition", "concept", "name"),
    define("preproc_def", "macro", "name"),
    define("preproc_function_def", "macro", "name"),
    define("init_declarator", "variable", "declarator"),
];
