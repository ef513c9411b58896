//! The original client: it prints everything while it waits for an answer, stops at the first end, and
//! names sessions by what its list shows.

use serde_json::{Value, json};

use super::client::{Terminal, of};
use super::{WITH_APPROVALS, shell};
use crate::daemon::World;

/// A client with the name and capabilities of the original one.
async fn original(world: &World) -> Terminal {
    let mut terminal = Terminal::connect(&world.terminal()).await;
    let params = json!({
        "protocol_version": "1.0.0",
        "client_info": { "name": "openagent-terminal", "version": "0.1.0" },
        "terminal_size": { "cols": 80, "rows": 24 },
        "capabilities": ["streaming", "blocks", "syntax_highlighting"],
    });
    terminal.request("initialize", params).await.unwrap();
    terminal
}

/// The text that it prints for notifications.
fn printed(notes: &[Value]) -> String {
    let shown = |note: &Value| match note["method"].as_str() {
        Some("stream.token" | "stream.block") => note["params"]["content"].as_str().map(Into::into),
        Some("tool.request_approval") => Some("[?]".to_owned()),
        _ => None,
    };
    notes.iter().filter_map(shown).collect()
}

#[tokio::test]
async fn the_turn_of_another_client_is_not_printed() {
    let world = World::start("").await;
    let client = world.client();
    let session = client.create(world.workspace()).await;
    let mut terminal = original(&world).await;
    terminal.request("session.load", json!({ "session_id": session })).await.unwrap();
    client.say(&session, json!([{ "text": "for the other" }])).await;
    client.until_over(&session).await;
    for answer in ["for me", "for me again"] {
        let query = terminal.query(world.workspace(), json!([{ "text": answer }])).await;
        let notes = terminal.until("stream.complete").await;
        assert_eq!(printed(&notes), answer);
        assert_eq!(of(&notes, "stream.complete")[0]["query_id"], query);
    }
}

#[tokio::test]
async fn an_approval_that_delays_its_query_is_sent_to_it() {
    let world = World::start(WITH_APPROVALS).await;
    let client = world.client();
    let session = client.create(world.workspace()).await;
    let mut terminal = original(&world).await;
    terminal.request("session.load", json!({ "session_id": session })).await.unwrap();
    client.say(&session, json!([{ "tools": [shell("echo a")] }, { "text": "theirs" }])).await;
    client.until(&session, |event| event.kind() == "approval_requested").await;
    let query = terminal.query(world.workspace(), json!([{ "text": "mine" }])).await;
    let notes = terminal.until("tool.request_approval").await;
    let approval = of(&notes, "tool.request_approval")[0];
    let answer = json!({ "execution_id": approval["execution_id"], "approved": true });
    terminal.request("tool.approve", answer).await.unwrap();
    let notes = terminal.until("stream.complete").await;
    assert_eq!(printed(&notes), "mine");
    assert_eq!(of(&notes, "stream.complete")[0]["query_id"], query);
}

#[tokio::test]
async fn output_is_printed_on_separate_lines() {
    let world = World::start("").await;
    let mut terminal = original(&world).await;
    let first = json!({ "text": "I look.", "tools": [shell("echo a; exit 3")] });
    terminal.query(world.workspace(), json!([first, { "text": "```\nb\n```\nDone." }])).await;
    let notes = terminal.until("stream.complete").await;
    assert_eq!(printed(&notes), "I look.\na\nexit code 3\nb\nDone.");
}

#[tokio::test]
async fn sessions_are_found_by_number_and_by_part_of_their_id() {
    let world = World::start("").await;
    let mut terminal = original(&world).await;
    let mut sessions = Vec::new();
    for text in ["one", "two"] {
        let mut other = original(&world).await;
        let script = json!([{ "text": text }]);
        let answer = other.query_with(world.workspace(), script, json!({})).await.unwrap();
        other.until("stream.complete").await;
        sessions.push(answer["session_id"].as_str().unwrap().to_owned());
    }
    let load = |name: &str| json!({ "session_id": name });
    // No list was sent yet.
    terminal.request("session.load", load("1")).await.unwrap_err();
    let listed = terminal.request("session.list", json!({})).await.unwrap();
    assert_eq!(listed["sessions"][0]["session_id"], sessions[1]);
    for (name, session) in [("1", &sessions[1]), ("2", &sessions[0]), (&sessions[0], &sessions[0])]
    {
        let loaded = terminal.request("session.load", load(name)).await.unwrap();
        assert_eq!(loaded["session_id"], *session);
    }
    let own = |id: &str| id.rsplit('_').next().unwrap()[..6].to_owned();
    let loaded = terminal.request("session.load", load(&own(&sessions[1]))).await.unwrap();
    assert_eq!(loaded["session_id"], sessions[1]);
    // The listed part of the ids is the same for both, so the error says how to name one.
    let refused = terminal.request("session.load", load(&sessions[0][..8])).await.unwrap_err();
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains(&own(&sessions[0])) && why.contains(&own(&sessions[1])), "{why}");
    for wrong in ["3", "0", "nope", "sess", "sess_2_"] {
        terminal.request("session.load", load(wrong)).await.unwrap_err();
    }
    terminal.request("session.delete", load("2")).await.unwrap();
    let exported = terminal.request("session.export", load(&sessions[1][..8])).await.unwrap();
    assert_eq!(exported["session_id"], sessions[1]);
}
