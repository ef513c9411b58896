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
