//! The context of a terminal as text for a model.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;

fn context(updates: &[Value]) -> Context {
    let mut context = Context::default();
    for update in updates {
        context.update(&Fields::of(update).unwrap()).unwrap();
    }
    context
}

#[track_caller]
fn check(updates: &[Value], tokens: u64, then: Expect) {
    then.assert_eq(&context(updates).for_model(tokens).unwrap_or_default());
}

fn full_context() -> Value {
    json!({
        "cwd": "/home/anna/project",
        "shell": "bash",
        "env": { "USER": "anna", "API_TOKEN": "correct-horse", "XYZZY": "1" },
        "recent_commands": [
            { "command": "cargo build", "exit_code": 0, "timestamp": 1_696_435_200 },
            { "command": "curl -H correct-horse x", "exit_code": 1 },
        ],
        "recent_output": "thread 'main' panicked at correct-horse\n",
        "open_files": ["src/main.rs", "Cargo.toml"],
        "more": true,
    })
}

#[test]
fn everything_but_secrets_is_included() {
    check(
        &[full_context()],
        1000,
        expect![[r#"
        The person's terminal at this moment:
        Current directory: /home/anna/project
        Shell: bash
        Open files: src/main.rs, Cargo.toml
        Recent commands, the newest first:
        $ curl -H [redacted] x (exit code 1)
        $ cargo build (exit code 0, 2023-10-04T16:00:00Z)
        Environment: API_TOKEN=[redacted] USER=anna
        Recent output:
        thread 'main' panicked at [redacted]"#]],
    );
}

#[test]
fn the_text_fits_the_budget() {
    check(
        &[full_context()],
        40,
        expect![[r#"
        The person's terminal at this moment:
        Current directory: /home/anna/project
        Shell: bash
        Open files: src/main.rs, Cargo.toml
        Recent commands, the newest first:"#]],
    );
    check(
        &[json!({ "cwd": "/a", "recent_output": "x".repeat(1000) })],
        25,
        expect![[r#"
        The person's terminal at this moment:
        Current directory: /a
        Recent output:
        xxxxxxxxxxxxxxxxxxxxxxxxx"#]],
    );
    check(&[json!({})], 1000, expect![""]);
    check(&[full_context()], 0, expect![""]);
}

#[test]
fn updates_are_merged() {
    check(
        &[
            full_context(),
            json!({ "cwd": "/b", "env": { "USER": "bob" }, "recent_output": "", "recent_commands": [] }),
        ],
        1000,
        expect![[r#"
            The person's terminal at this moment:
            Current directory: /b
            Shell: bash
            Open files: src/main.rs, Cargo.toml
            Environment: API_TOKEN=[redacted] USER=bob"#]],
    );
}

#[test]
fn an_invalid_update_names_the_field_and_changes_nothing() {
    let mut context = context(&[full_context()]);
    let before = context.clone();
    for (invalid, field) in [
        (json!({ "shell": "zsh", "cwd": 7 }), "cwd"),
        (json!({ "cwd": "here" }), "cwd"),
        (json!({ "env": { "A": 1 } }), "env.A"),
        (json!({ "recent_commands": ["ls"] }), "recent_commands"),
        (json!({ "recent_commands": [{}] }), "recent_commands.command"),
        (
            json!({ "recent_commands": [{ "command": "x", "exit_code": "0" }] }),
            "recent_commands.exit_code",
        ),
        (json!({ "open_files": "x" }), "open_files"),
        (json!({ "recent_output": [] }), "recent_output"),
    ] {
        let error = context.update(&Fields::of(&invalid).unwrap()).unwrap_err();
        assert_eq!(error.data.unwrap()["field"], field);
    }
    assert_eq!(context, before);
}
