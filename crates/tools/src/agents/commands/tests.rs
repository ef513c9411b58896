//! Markdown in, commands out.

use super::verify_commands;

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(verify_commands(text), expected, "{text}");
    let windows = text.replace('\n', "\r\n");
    assert_eq!(verify_commands(&windows), expected, "with CRLF: {windows}");
}

#[test]
fn a_heading_rules_what_is_below_it() {
    check("# Verify\n- make test\n- make lint\n", &["make test", "make lint"]);
    check(
        "## Verification ##\n1. `cargo test`\n2) ./check.sh --all\n",
        &["cargo test", "./check.sh --all"],
    );
    check(
        "### **Verify:**\n\n```sh\nmake test\n```\nand\n```\nmake lint\n```",
        &["make test", "make lint"],
    );
    check("# Verify\n## Unit\n- make unit\n# Other\n- make never\n", &["make unit"]);
    check("## Verify\n- make a\n# Up\n- make b\n", &["make a"]);
    check("# Verifying things\n- make test\n# Build\n```\nmake\n```", &[]);
    check("#Verify\n- make test", &[]);
}

#[test]
fn a_line_rules_what_is_in_it_or_right_after_it() {
    check("Verify: make test", &["make test"]);
    check(
        "text\n**Verify:** `make test`\nVerification: `a`, `b` and `c`; more",
        &["make test", "a", "b", "c"],
    );
    check("- Verify: `make test`\n- Build: `make`\n", &["make test"]);
    check("Verify:\n- make a\n- make b\n\nBuild:\n- make c\n", &["make a", "make b"]);
    check("Verify:\n\n```\nmake a\n```\n\n```\nmake b\n```\n", &["make a"]);
    check("verify:\nSome text.\n- make a\n", &[]);
    check("Always verify: this is prose about `make`\n", &[]);
}

#[test]
fn a_block_may_be_marked() {
    check("```verify\nmake test\n```\n\n```sh\nmake never\n```", &["make test"]);
    check("~~~~ Verify\nmake test\n~~~\nmake lint\n~~~~\n", &["make test", "~~~", "make lint"]);
    check("```rust\n// Verify: make never\n# Verify\n- make never\n```", &[]);
    check("# Verify\n```toml\ntest = 1\n```\n", &[]);
}

#[test]
fn prompts_and_comments_are_not_part_of_a_command() {
    check(
        "```verify\n# first\n$ make test\nok 1 test\n  $ make lint\n```",
        &["make test", "make lint"],
    );
    check("# Verify\n```console\n#!/bin/sh\n\n  make test # all\n```", &["make test # all"]);
    check(
        "```verify\ncargo test \\\n    --workspace \\\n    --all-targets\nmake\n```",
        &["cargo test --workspace --all-targets", "make"],
    );
    check("Verify: $ make test\nVerify: `$ make lint`", &["make test", "make lint"]);
}

#[test]
fn items_are_commands_only_if_they_look_like_it() {
    let text = "# Verify
- `make test` checks the units
- Run `make lint`
- **All**: `make all`, then `make more`
- Never run `make deploy`
- Check that the docs are right
- the docs are right.
- RUST_LOG=debug cargo test
- go test ./...
- unit:
  - make unit
    * [ ] make deep
  - ```
    make fenced
    ```
- `unclosed
";
    let expected = [
        "make test",
        "make lint",
        "make all",
        "make more",
        "RUST_LOG=debug cargo test",
        "go test ./...",
        "make unit",
        "make deep",
        "make fenced",
    ];
    check(text, &expected);
}

#[test]
fn what_is_broken_does_no_harm() {
    check(
        "```verify\nmake test\nmake lint\n\nAll of this is prose.\n# Verify\n- x",
        &["make test", "make lint", "x"],
    );
    check("# Verify\n```\nmake test", &["make test"]);
    check("```verify", &[]);
    check("# Verify", &[]);
    check("", &[]);
    check("Verify:", &[]);
    check("# Verify\n-\n- \n*\n1.\n````\n", &[]);
    check("# Verify\n- make a\n- make a\n```verify\nmake a\n```", &["make a"]);
    assert_eq!(
        verify_commands(&format!(
            "# Verify\n{}",
            (0..99).map(|n| format!("- x{n}\n")).collect::<String>()
        ))
        .len(),
        20
    );
}
