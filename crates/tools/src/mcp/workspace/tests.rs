//! What a workspace's file may say.

use super::*;

fn check(file: Value) -> (Vec<String>, usize) {
    let WorkspaceServers { servers, problems } = WorkspaceServers::parse(&file);
    (servers.into_iter().map(|server| server.name).collect(), problems.len())
}

#[test]
fn a_bad_entry_does_not_hide_the_others() {
    let file = json!({ "mcpServers": {
        "a": { "command": "x", "args": ["y"], "env": { "K": "v" } },
        "b": { "type": "http", "url": "http://127.0.0.1:1/mcp", "headers": { "A": "b" } },
        "c": { "type": "sse", "url": "http://127.0.0.1:1/sse" },
        "d": {},
        "e": 7,
    } });
    assert_eq!(check(file), (vec!["a".into(), "b".into()], 3));
    assert_eq!(check(json!([])), (vec![], 1));
}

#[test]
fn another_command_is_another_digest() {
    let entry = |command: &str| vec![server("a", &json!({ "command": command })).unwrap()];
    let digest = |command: &str| digest(Path::new("/w"), &entry(command));
    assert_eq!(digest("x"), digest("x"));
    assert_ne!(digest("x"), digest("y"));
}

#[test]
fn nothing_is_started_that_is_not_shown() {
    let long = "x".repeat(SHOWN_LIMIT);
    let file = json!({ "mcpServers": {
        "a": { "command": "echo", "args": [long] },
        "b": { "command": "touch", "args": ["hi\nz: harmless", "\u{202e}gnp", "a b"] },
    } });
    let read = WorkspaceServers::parse(&file);
    assert_eq!(read.problems, [".mcp.json: a: is too long to be shown to a person"]);
    let shown: Vec<_> = read.servers.iter().map(described).collect();
    assert_eq!(shown, [r#"b: touch "hi\nz: harmless" "\u{202e}gnp" "a b""#]);
}
