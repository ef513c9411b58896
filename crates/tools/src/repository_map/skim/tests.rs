//! Skims ignore comments and strings, and a wrong guess does not affect the lines after it.

use std::path::Path;

use super::*;
use crate::repository_map::languages;

/// Checks which of the words `one` to `four` a skim finds used, and which defined.
#[track_caller]
fn check(path: &str, text: &str, used: &str, defined: &str) {
    let language = languages::rules(Path::new(path), text.as_bytes()).unwrap().language;
    let skim = Skim::of(language, text.as_bytes());
    let name = |word: &str| Name::of(language.family, word.as_bytes());
    let words = ["one", "two", "three", "four"];
    let mut is_used = words.to_vec();
    is_used.retain(|word| skim.uses.iter().any(|(used, _)| *used == name(word)));
    let mut is_defined = words.to_vec();
    is_defined.retain(|word| skim.defined.contains(&name(word)));
    assert_eq!((is_used.join(" "), is_defined.join(" ")), (used.into(), defined.into()), "{text}");
}

#[test]
fn comments_and_strings_are_passed_over() {
    check("a.rs", "// one()\n/* two()\ntwo() */ three() \"four()\"", "three", "");
    check("a.rs", "\"a \\\" one()\" two() '\"' three()\nfour()", "two four", "");
    check("a.py", "# one()\n\"\"\"two()\n'three()'\"\"\"\nfour('it\\'s one()')", "four", "");
    check("a.js", "`one() ${two()}\n` + three() // four()", "three", "");
    check("a.go", "x := `one()\n\"` + two('\\'', three())", "two three", "");
    check("a.c", "/* one() */ #define two 1\nthree(\"//\") + four()", "four", "two three");
}

#[test]
fn a_string_that_is_none_ends_with_the_line() {
    check("a.rs", "let x = '\"'; one();\ntwo();", "two", "");
    check("a.c", "#error don't one()\nint x = two();", "two", "");
    check("a.js", "x = /\"/; one()\ny = two()", "two", "");
}

#[test]
fn uses_are_calls_and_what_has_a_capital_letter() {
    check("a.rs", "one; two.three; four[0]", "", "");
    check("a.rs", "one!(x); two::<u8>(); x.three(); three != four", "one two three", "");
    check("a.rs", "#[one(two)]\n#![three(four)]", "", "");
    check("a.c", "x = sizeof(struct one) + two->three;", "one", "");
}

#[test]
fn functions_that_no_word_announces_are_told_by_their_lines() {
    check(
        "a.c",
        "static int\none(int a)\n{\n  two(a);\n  x = three(a);\n}\nint four(void);\n",
        "two three four",
        "one",
    );
    check(
        "a.java",
        "  @X public List<T> one(int a) {\n    two(a);\n    x.three(() -> {\n",
        "two three",
        "one",
    );
    check(
        "a.ts",
        "  async one(a: T): P<T> {\n    two(a, () => {\n    });\n    if (three(a)) {\n",
        "two three",
        "one",
    );
    check(
        "a.go",
        "func (s *T) one(a int) {\n\ttwo(a)\n}\nvar x = three()\nfunc four[T any]() {}",
        "two three",
        "one four",
    );
}

#[test]
fn a_name_with_a_body_is_defined_and_without_one_used() {
    check(
        "a.c",
        "struct one {\n};\nstruct two\n{};\nstruct three *x;\nenum four { A };\n",
        "three",
        "one two four",
    );
    check("a.hpp", "class one : two {};\nclass three;\ntypedef int four;\n", "three", "one four");
    check("a.js", "const one = 1;\n  const two = 2;\nexport let three;\n", "", "one three");
    check("a.py", "one = 1\ntwo: int\n  three = 1\nfour == 1\n", "", "one two four");
}

#[test]
fn any_text_can_be_skimmed() {
    let ends = ["rs", "py", "ts", "js", "go", "java", "c", "cpp"];
    let pieces = [
        "\"", "'", "`", "/*", "\\", "\n", "fn", "struct ", "a(", "{", "é", "#[", "\"\"\"",
        "typedef ",
    ];
    for end in ends {
        let language = languages::rules(Path::new(&format!("a.{end}")), b"").unwrap().language;
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let text = [first, second, third].concat();
                    Skim::of(language, text.as_bytes());
                    functions(language, text.as_bytes());
                }
            }
        }
    }
}
