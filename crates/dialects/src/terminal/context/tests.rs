//! What a model is told of a terminal, and how much of it.

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

fn whole() -> Value {
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
fn everything_is_told_but_secrets() {
    check(
        &[whole()],
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
fn there_is_only_so_much_room() {
    check(
        &[whole()],
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
    check(&[whole()], 0, expect![""]);
}

#[test]
fn updates_add_up() {
    check(
        &[
            whole(),
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
fn what_is_wrong_is_named_and_changes_nothing() {
    let mut context = context(&[whole()]);
    let before = context.clone();
    for (wrong, field) in [
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
        let error = context.update(&Fields::of(&wrong).unwrap()).unwrap_err();
        assert_eq!(error.data.unwrap()["field"], field);
    }
    assert_eq!(context, before);
}
