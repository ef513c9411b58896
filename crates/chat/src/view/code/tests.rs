//! Tests of code highlighting.

use expect_test::{Expect, expect};

use super::*;

/// Marks highlighted text with its role.
fn check(language: &str, text: &str, expect: Expect) {
    let mark = |(role, text): &(TextRole, String)| match role {
        TextRole::Plain => text.clone(),
        role => format!("{role:?}[{text}]"),
    };
    let rows = paint(language, text);
    let rows: Vec<String> = rows.iter().map(|row| row.iter().map(mark).collect()).collect();
    expect.assert_eq(&rows.join("\n"));
    let back: Vec<String> = paint(language, text)
        .iter()
        .map(|row| row.iter().map(|(_, text)| text.as_str()).collect())
        .collect();
    assert_eq!(back.join("\n"), text.replace('\t', "    "), "nothing is lost");
}

#[test]
fn languages_are_highlighted() {
    check(
        "rust",
        "fn main() {\n    let c: &'a str = \"x\\\"y\"; // why\n    println!(\"{}\", 'c'); /* a\nb */ 1..2.5\n}",
        expect![[r#"
            Keyword[fn] Name[main]() {
                Keyword[let] c: &'a str = Text["x\"y"]; Comment[// why]
                Name[println]!(Text["{}"], Text['c']); Comment[/* a]
            Comment[b */] Number[1]..Number[2.5]
            }"#]],
    );
    check(
        "python",
        "def f(x):\n    \"\"\"Doc\n    more\"\"\"\n    return x + 0x1F  # no",
        expect![[r#"
            Keyword[def] Name[f](x):
                Text["""Doc]
            Text[    more"""]
                Keyword[return] x + Number[0x1F]  Comment[# no]"#]],
    );
    check(
        "bash",
        "for f in *.rs; do echo \"$f\" $HOME; done # all",
        expect![[
            r#"Keyword[for] f Keyword[in] *.rs; Keyword[do] Keyword[echo] Text["$f"] Name[$HOME]; Keyword[done] Comment[# all]"#
        ]],
    );
    check(
        "json",
        "{\"key\": [1, true, \"text\"]}",
        expect![[r#"{Name["key"]: [Number[1], Keyword[true], Text["text"]]}"#]],
    );
    check(
        "toml",
        "# head\n[a]\nkey = \"value\"",
        expect![[r#"
        Comment[# head]
        [a]
        Name[key] = Text["value"]"#]],
    );
    check(
        "diff",
        "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same",
        expect![[r#"
        Strong[--- a]
        Strong[+++ b]
        Hunk[@@ -1 +1 @@]
        Removed[-old]
        Added[+new]
         same"#]],
    );
}

#[test]
fn unknown_languages_and_invalid_code_are_plain() {
    check("klingon", "a\tb 'c", expect!["a    b 'c"]);
    check("rust", "\"open", expect![[r#"Text["open]"#]]);
    check("rust", "'", expect!["'"]);
    check(
        "js",
        "`日本\n語` /*",
        expect![[r#"
        Text[`日本]
        Text[語`] Comment[/*]"#]],
    );
    check("", "", expect![[""]]);
}
