//! Which tools a search finds.

use super::*;

fn tool(name: &str, description: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({}),
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    })
}

#[test]
fn names_count_for_more_than_descriptions() {
    let tools = [
        tool("mail__send", "Send a message"),
        tool("chat__post", "Send a message to a channel"),
        tool("mail__list_folders", "All folders"),
    ];
    let found = |query: &str| -> Vec<&str> {
        find(&tools, query).into_iter().map(|tool| tool.name.as_str()).collect()
    };
    assert_eq!(found("send"), ["mail__send", "chat__post"]);
    assert_eq!(found("mail__list_folders"), ["mail__list_folders", "mail__send"]);
    assert!(found("weather").is_empty());
    assert!(found("").is_empty());
}

#[test]
fn the_index_is_bounded() {
    let tools: Vec<_> = (0..1000).map(|n| tool(&format!("server__tool_{n}"), "")).collect();
    let text = index(&tools);
    assert!(text.len() < INDEX_LIMIT + 100 && text.contains(" more"), "{}", text.len());
}
