//! Blocks of texts, parsed at once and in pieces.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn describe(block: &Block) -> String {
    let Block { kind, language, content, meta } = block;
    let mut line = format!("{} {} {content:?}", kind.name(), language.as_deref().unwrap_or("-"));
    let about =
        [meta.file.as_deref(), meta.lines.as_deref(), meta.executable.then_some("executable")];
    about.into_iter().flatten().for_each(|word| line.push_str(&format!(" [{word}]")));
    line
}

#[track_caller]
fn check(text: &str, then: Expect) {
    then.assert_eq(&blocks(text).iter().map(describe).collect::<Vec<_>>().join("\n"));
}

#[test]
fn prose_and_code() {
    check(
        "Hello.\n\nWorld.\n```rs\nfn a() {}\n```\nDone",
        expect![[r#"
        text - "Hello.\n\nWorld."
        code rust "fn a() {}"
        text - "Done""#]],
    );
    check("```\nplain\n```", expect![[r#"code text "plain""#]]);
    check("~~~py\na\n```\n~~~\n", expect![[r#"code python "a\n```""#]]);
    check(
        "1. do\n    ```sh\n    ls\n      -l\n    ```\n",
        expect![[r#"
        text - "1. do"
        code bash "ls\n  -l" [executable]"#]],
    );
    check(
        "see ```inline``` and\n```also inline``` here",
        expect![[r#"text - "see ```inline``` and\n```also inline``` here""#]],
    );
    check("```rust\nnever closed", expect![[r#"code rust "never closed""#]]);
    check("````md\n```rust\n```\n````", expect![[r#"code md "```rust\n```""#]]);
    check("", expect![""]);
    check("\n  \n", expect![""]);
}

#[test]
fn files_and_lines() {
    check("```rust src/main.rs:10-15\nx\n```", expect![[r#"code rust "x" [src/main.rs] [10-15]"#]]);
    check("```rust:src/main.rs\nx\n```", expect![[r#"code rust "x" [src/main.rs]"#]]);
    check("```10:15:src/main.rs\nx\n```", expect![[r#"code rust "x" [src/main.rs] [10-15]"#]]);
    check(
        "```python title=\"a b\" file=x.py lines=3\nx\n```",
        expect![[r#"code python "x" [x.py] [3]"#]],
    );
    check("```src/lib.rs\nx\n```", expect![[r#"code rust "x" [src/lib.rs]"#]]);
    check("```js {2-4}\nx\n```", expect![[r#"code javascript "x" [2-4]"#]]);
}

#[test]
fn diffs_errors_and_output() {
    check(
        "```diff\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +3,4 @@\n-x\n+y\n```",
        expect![[
            r#"diff diff "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2 +3,4 @@\n-x\n+y" [src/a.rs] [3-6]"#
        ]],
    );
    check("```\n-a\n+b\n+c\n```", expect![[r#"diff diff "-a\n+b\n+c""#]]);
    check("```yaml\n- a\n- b\n- c\n```", expect![[r#"code yaml "- a\n- b\n- c""#]]);
    check("```error\nE0308\n```", expect![[r#"error error "E0308""#]]);
    check("```output\nok\n```", expect![[r#"tool_output output "ok""#]]);
}

proptest! {
    #[test]
    fn blocks_do_not_depend_on_pieces(
        text in "([a-z`~ \n\u{e9}+-]|```|\n```rust\n|\n```\n){0,60}",
        cuts in prop::collection::vec(0..200_usize, 0..8),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| text.floor_char_boundary(*cut)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let mut parser = BlockParser::default();
        let mut events: Vec<BlockEvent> =
            cuts.windows(2).flat_map(|cut| parser.push(&text[cut[0]..cut[1]])).collect();
        events.extend(parser.finish());
        let mut returned = String::new();
        let mut complete = Vec::new();
        for one in events {
            match one {
                BlockEvent::Text { text, .. } => returned.push_str(&text),
                BlockEvent::Block(block) => complete.push(block),
            }
        }
        prop_assert_eq!(returned, text.clone());
        prop_assert_eq!(complete, blocks(&text));
    }
}
