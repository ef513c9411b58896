//! The responses and notifications that clients of the original server need: every member that they read,
//! with the expected type.

use serde_json::{Value, json};

use super::of;
use crate::daemon::World;
use crate::socket::Socket;

/// Checks a value against a form: a string names a type or is the value itself; `?` allows it to be
/// missing.
#[track_caller]
fn check(label: &str, got: &Value, form: &Value) {
    match form {
        Value::Object(members) => {
            for (name, form) in members {
                check(&format!("{label}.{name}"), &got[name], form);
            }
        }
        Value::Array(forms) => {
            let items = got.as_array().unwrap_or_else(|| panic!("{label} is no list: {got}"));
            assert!(!items.is_empty(), "{label} is empty");
            items.iter().for_each(|item| check(&format!("{label}[]"), item, &forms[0]));
        }
        Value::String(word) => {
            let missing = word.ends_with('?') && got.is_null();
            assert!(missing || is(got, word.trim_end_matches('?')), "{label} is no {word}: {got}");
        }
        other => assert_eq!(got, other, "{label}"),
    }
}

fn is(got: &Value, word: &str) -> bool {
    match word {
        "whole" => got.is_u64(),
        "number" => got.is_number(),
        "text" => got.is_string(),
        "flag" => got.is_boolean(),
        "list" => got.is_array(),
        "object" => got.is_object(),
        "time" => got.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z')),
        exactly => got == exactly,
    }
}

async fn connect(world: &World) -> Socket {
    Socket::connect(&format!("{}/ws", world.agent())).await
}

async fn create(world: &World, socket: &mut Socket) -> String {
    let params = json!({ "workingDirectory": world.workspace() });
    let created = socket.ask_legacy("session.create", params).await.unwrap();
    check(
        "created",
        &created,
        &json!({ "sessionId": "text", "model": "text", "createdAt": "time" }),
    );
    created["sessionId"].as_str().unwrap().to_owned()
}

/// Runs a turn and returns its frames.
async fn turn(socket: &mut Socket, id: &str, script: Value) -> Vec<Value> {
    let prompt = format!("go {{{{script: {script}}}}}");
    let params = json!({ "sessionId": id, "prompt": prompt });
    socket.ask_legacy("agent.prompt", params).await.unwrap();
    socket.until(|frame| frame["type"] == "agent.ready").await
}

fn data_of<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| frame["type"] == kind).map(|frame| &frame["data"]).collect()
}

#[tokio::test]
async fn every_model_call_is_a_turn_with_a_start_and_an_end() {
    let world = World::start("[approval]\nkinds = []\n[verify]\nauto = false\n").await;
    let mut socket = connect(&world).await;
    let id = create(&world, &mut socket).await;
    let script = json!([
        { "text": "look", "tools": [{ "name": "shell", "args": { "command": "echo hi" } }] },
        { "text": "fail", "tools": [{ "name": "read_file", "args": { "path": "none" } }] },
        { "text": "done" },
    ]);
    let frames = turn(&mut socket, &id, script).await;
    let order: Vec<&str> = frames
        .iter()
        .filter_map(|frame| frame["type"].as_str())
        .filter(|kind| {
            ["turn_", "tool_start", "tool_end", "complete"].iter().any(|part| kind.contains(part))
        })
        .collect();
    let step = ["agent.turn_start", "agent.tool_start", "agent.tool_end", "agent.turn_end"];
    let end = ["agent.turn_start", "agent.turn_end", "agent.complete"];
    assert_eq!(order, [&step[..], &step[..], &end[..]].concat());
    for (kind, form) in [
        ("agent.turn_start", json!({ "turn": "whole" })),
        ("agent.text_delta", json!({ "delta": "text" })),
        (
            "agent.tool_start",
            json!({ "toolCallId": "text", "toolName": "text", "arguments": "object" }),
        ),
        (
            "agent.tool_end",
            json!({ "toolCallId": "text", "toolName": "text", "success": "flag",
                    "duration": "whole", "output": "text?", "error": "text?" }),
        ),
        (
            "agent.turn_end",
            json!({ "turn": "whole", "duration": "whole", "stopReason": "text",
                    "tokenUsage": { "inputTokens": "whole", "outputTokens": "whole" } }),
        ),
        (
            "agent.complete",
            json!({ "turns": 3, "success": true,
                    "tokenUsage": { "input": "whole", "output": "whole" } }),
        ),
        (
            "events.new",
            json!({ "sessionId": "text", "event": {
                "id": "text", "parentId": "text?", "sessionId": "text", "workspaceId": "text",
                "type": "text", "timestamp": "time", "sequence": "whole", "payload": "object" } }),
        ),
    ] {
        let found = data_of(&frames, kind);
        assert!(!found.is_empty(), "{kind} was not sent");
        found.iter().for_each(|data| check(kind, data, &form));
    }
    let failed = data_of(&frames, "agent.tool_end")[1];
    assert!(failed["error"].as_str().is_some_and(|error| !error.is_empty()), "{failed}");
    assert!(frames.iter().all(|frame| is(&frame["timestamp"], "time")));
}

#[tokio::test]
async fn every_response_has_the_members_that_clients_read() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    let id = create(&world, &mut socket).await;
    turn(&mut socket, &id, json!([{ "text": "one" }])).await;
    let context = json!({ "currentTokens": "whole", "contextLimit": "whole", "usagePercent": "number",
        "thresholdLevel": "text", "breakdown": { "systemPrompt": "whole", "tools": "whole",
        "rules": "whole", "messages": "whole" } });
    let mut whole = context.clone();
    whole["messages"] = json!([{ "index": "whole", "role": "text", "tokens": "whole",
        "summary": "text", "content": "text" }]);
    whole["systemPromptContent"] = json!("text");
    whole["toolsContent"] = json!(["text"]);
    whole["addedSkills"] = json!("list");
    let branch = json!({ "sessionId": "text", "forkEventId": "text", "headEventId": "text",
        "messageCount": "whole", "createdAt": "time", "lastActivity": "time" });
    let node = json!({ "id": "text", "parentId": "text?", "type": "text", "timestamp": "time",
        "summary": "text", "hasChildren": "flag", "childCount": "whole", "depth": "whole",
        "isBranchPoint": "flag", "isHead": "flag" });
    for (method, form) in [
        (
            "session.getState",
            json!({ "sessionId": "text", "workspaceId": "text", "headEventId": "text",
                "model": "text", "workingDirectory": "text", "messages": ["object"],
                "tokenUsage": { "inputTokens": "whole", "outputTokens": "whole" },
                "turnCount": "whole", "eventCount": "whole" }),
        ),
        (
            "session.resume",
            json!({ "sessionId": "text", "model": "text", "messageCount": "whole",
                "lastActivity": "time" }),
        ),
        ("session.getHead", json!({ "headEventId": "text", "headEvent": "object" })),
        ("context.getSnapshot", context.clone()),
        ("context.getDetailedSnapshot", whole),
        ("context.shouldCompact", json!({ "shouldCompact": "flag" })),
        (
            "context.canAcceptTurn",
            json!({ "canProceed": "flag", "needsCompaction": "flag", "wouldExceedLimit": "flag",
                "currentTokens": "whole", "estimatedAfterTurn": "whole", "contextLimit": "whole" }),
        ),
        (
            "agent.getState",
            json!({ "isRunning": "flag", "currentTurn": "whole", "messageCount": "whole",
                "tokenUsage": { "input": "whole", "output": "whole" }, "model": "text",
                "tools": ["text"], "wasInterrupted": "flag" }),
        ),
        (
            "events.getHistory",
            json!({ "events": ["object"], "hasMore": "flag", "oldestEventId": "text",
                "headEventId": "text" }),
        ),
        (
            "events.getSince",
            json!({ "events": ["object"], "hasMore": "flag", "nextCursor": "text" }),
        ),
        ("tree.getBranches", json!({ "mainBranch": branch, "forks": "list" })),
        (
            "tree.getVisualization",
            json!({ "sessionId": "text", "rootEventId": "text", "headEventId": "text",
                "nodes": [node], "totalEvents": "whole" }),
        ),
        ("worktree.getStatus", json!({ "hasWorktree": false })),
        ("todo.list", json!({ "todos": "list", "summary": "text" })),
        ("browser.getStatus", json!({ "hasBrowser": false, "isStreaming": false })),
    ] {
        let answer = socket.ask_legacy(method, of(&id)).await;
        check(method, &answer.unwrap_or_else(|error| panic!("{method}: {error}")), &form);
    }
    for (method, params, form) in [
        (
            "system.getInfo",
            json!({}),
            json!({ "version": "text", "uptime": "whole", "activeSessions": "whole" }),
        ),
        (
            "model.list",
            json!({}),
            json!({ "models": [{ "id": "text", "name": "text", "provider": "text", "contextWindow": "whole" }] }),
        ),
        (
            "session.list",
            json!({ "limit": 5 }),
            json!({ "sessions": [{ "sessionId": "text", "workingDirectory": "text", "model": "text",
                "messageCount": "whole", "inputTokens": "whole", "outputTokens": "whole",
                "cost": "number", "createdAt": "time", "lastActivity": "time", "isActive": "flag" }] }),
        ),
        (
            "filesystem.getHome",
            json!({}),
            json!({ "homePath": "text", "suggestedPaths": [{ "name": "text", "path": "text" }] }),
        ),
    ] {
        check(method, &socket.ask_legacy(method, params).await.unwrap(), &form);
    }
}

#[tokio::test]
async fn a_compaction_can_be_previewed_and_its_summary_edited() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    let id = create(&world, &mut socket).await;
    let nothing = socket.ask_legacy("context.previewCompaction", of(&id)).await.unwrap();
    assert_eq!((&nothing["summary"], &nothing["summarizedTurns"]), (&json!(""), &json!(0)));
    turn(&mut socket, &id, json!([{ "text": "one" }])).await;
    let head = socket.ask_legacy("session.getHead", of(&id)).await.unwrap()["headEventId"].clone();
    let calls = world.model.calls().len();
    let preview = socket.ask_legacy("context.previewCompaction", of(&id)).await.unwrap();
    let form = json!({ "tokensBefore": "whole", "tokensAfter": "whole", "compressionRatio": "number",
        "preservedTurns": 0, "summarizedTurns": 1, "summary": "text" });
    check("preview", &preview, &form);
    assert!(!preview["summary"].as_str().unwrap().is_empty());
    assert_eq!(world.model.calls().len(), calls + 1, "the model writes the preview");
    let still = socket.ask_legacy("session.getHead", of(&id)).await.unwrap();
    assert_eq!(still["headEventId"], head, "nothing is stored");
    let words = json!({ "sessionId": id, "editedSummary": "they met" });
    let done = socket.ask_legacy("context.confirmCompaction", words).await.unwrap();
    let form = json!({ "success": true, "tokensBefore": preview["tokensBefore"],
        "tokensAfter": "whole", "compressionRatio": "number", "summary": "they met" });
    check("confirmed", &done, &form);
    assert_eq!(world.model.calls().len(), calls + 1, "an edited summary needs no model");
    let read = json!({ "sessionId": id, "types": ["compact.boundary"] });
    let events = socket.ask_legacy("events.getHistory", read).await.unwrap();
    let form = json!([{ "type": "compact.boundary", "payload": { "summary": "they met",
        "originalTokens": "whole", "compactedTokens": "whole", "range": { "from": "text", "to": "text" } } }]);
    check("events", &events["events"], &form);
    turn(&mut socket, &id, json!([{ "text": "two" }])).await;
    let request = world.model.calls().pop().unwrap();
    assert!(request.to_string().contains("they met"), "{request}");
    let again = socket.ask_legacy("context.compact", of(&id)).await.unwrap();
    check(
        "compacted",
        &again,
        &json!({ "success": true, "summary": "text", "tokensAfter": "whole" }),
    );
}

#[tokio::test]
async fn a_history_is_read_across_a_fork_and_from_a_time() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    let id = create(&world, &mut socket).await;
    turn(&mut socket, &id, json!([{ "text": "one" }])).await;
    let all = socket.ask_legacy("events.getHistory", of(&id)).await.unwrap();
    let at = all["events"][0].clone();
    let fork = json!({ "sessionId": id, "fromEventId": at["id"] });
    let fork = socket.ask_legacy("session.fork", fork).await.unwrap();
    let above = json!({ "eventId": fork["rootEventId"] });
    let above = socket.ask_legacy("tree.getAncestors", above).await.unwrap();
    let kinds: Vec<&str> = above["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("session.start", "session.fork"));
    assert_eq!(above["targetEvent"]["id"], fork["rootEventId"]);
    let tree = socket.ask_legacy("tree.getVisualization", of(&id)).await.unwrap();
    let nodes = tree["nodes"].as_array().unwrap();
    let branched: Vec<&Value> =
        nodes.iter().filter(|node| node["childCount"] == 1 && node["isHead"] == true).collect();
    assert_eq!(branched.len(), 1, "the fork is a child of the newest event");
    let since = json!({ "sessionId": id, "afterTimestamp": at["timestamp"] });
    let since = socket.ask_legacy("events.getSince", since).await.unwrap();
    assert!(since["events"].as_array().unwrap().iter().any(|event| event["id"] == at["id"]));
    let later = json!({ "sessionId": id, "afterTimestamp": "2999-01-01T00:00:00.000Z" });
    assert_eq!(socket.ask_legacy("events.getSince", later).await.unwrap()["events"], json!([]));
    let wrong = json!({ "sessionId": id, "afterTimestamp": "yesterday" });
    assert_eq!(
        socket.ask_legacy("events.getSince", wrong).await.unwrap_err()["code"],
        "INVALID_PARAMS"
    );
}

#[tokio::test]
async fn folders_can_be_listed_and_created() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    let workspace = world.workspace().to_str().unwrap().to_owned();
    let make = json!({ "path": format!("{workspace}/new/er"), "recursive": true });
    assert_eq!(
        socket.ask_legacy("filesystem.createDir", make.clone()).await.unwrap()["created"],
        true
    );
    assert_eq!(
        socket.ask_legacy("filesystem.createDir", make).await.unwrap_err()["code"],
        "FILESYSTEM_ERROR"
    );
    let listed =
        socket.ask_legacy("filesystem.listDir", json!({ "path": workspace })).await.unwrap();
    let entry =
        json!({ "name": "text", "path": "text", "isDirectory": "flag", "isSymlink": "flag" });
    check("listed", &listed, &json!({ "path": workspace, "parent": "text", "entries": [entry] }));
    assert!(listed["entries"].as_array().unwrap().iter().any(|one| one["name"] == "new"));
    for (path, code) in [
        ("/no/such/folder", "FILESYSTEM_ERROR"),
        ("../etc", "INVALID_PARAMS"),
        ("/a/../b", "INVALID_PARAMS"),
    ] {
        let answer = socket.ask_legacy("filesystem.listDir", json!({ "path": path })).await;
        assert_eq!(answer.unwrap_err()["code"], code, "{path}");
    }
}

#[tokio::test]
async fn unavailable_methods_are_refused_with_the_originals_codes() {
    let world = World::start("").await;
    let mut socket = connect(&world).await;
    let id = create(&world, &mut socket).await;
    for (method, code) in [
        ("message.delete", "NOT_AVAILABLE"),
        ("git.clone", "NOT_AVAILABLE"),
        ("device.register", "NOT_AVAILABLE"),
        ("no.such", "METHOD_NOT_FOUND"),
    ] {
        let error = socket.ask_legacy(method, of(&id)).await.unwrap_err();
        assert_eq!(error["code"], code, "{method}");
        assert!(error["message"].as_str().unwrap().contains(method));
    }
}

#[tokio::test]
async fn the_newest_part_of_a_large_history_is_read() {
    let world = World::start("").await;
    let (client, mut socket) = (world.client(), connect(&world).await);
    let id = create(&world, &mut socket).await;
    for n in 0..4 {
        let text = format!("{n} {}", "x".repeat(3 << 20));
        let body = json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
        client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    }
    let read = json!({ "sessionId": id, "limit": 50 });
    let read = socket.ask_legacy("events.getHistory", read).await.unwrap();
    let events = read["events"].as_array().unwrap();
    let texts: Vec<&str> =
        events.iter().filter_map(|event| event["payload"]["content"].as_str()).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &text[..1]).collect();
    assert_eq!((texts, &read["hasMore"]), (vec!["3", "2"], &json!(true)));
}
