//! Tests of the model: given earlier messages, when a key is pressed or a message arrives, then
//! these requests and entries follow.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::json;

use super::*;
use crate::wire::Decision;

fn started() -> Model {
    let mut model = Model::new(Size { cols: 80, rows: 24 }, None, None);
    let models = json!([{ "name": "demo/small", "loaded": true, "default": true }]);
    assert_eq!(update(&mut model, Message::Back(json!({ "models": models }))), []);
    model
}

fn press(model: &mut Model, code: KeyCode) -> Vec<Request> {
    update(model, Message::Key(code.into()))
}

fn ctrl(model: &mut Model, letter: char) -> Vec<Request> {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    update(model, Message::Key(key))
}

fn enter(model: &mut Model, text: &str) -> Vec<Request> {
    update(model, Message::Paste(text.into()));
    press(model, KeyCode::Enter)
}

fn receive(model: &mut Model, method: &str, params: Value) -> Vec<Request> {
    let message = json!({ "method": method, "params": params });
    update(model, Message::Notice(Notice::read(&message).unwrap()))
}

fn query(text: &str) -> Request {
    Request::Query { text: text.into(), model: None }
}

fn accept(model: &mut Model, text: &str) -> Vec<Request> {
    let result = json!({ "query_id": "q-1", "session_id": "session-1" });
    update(model, Message::Answer(query(text), Ok(result)))
}

/// A screen whose query is being answered.
fn with_running_query() -> Model {
    let mut model = started();
    assert_eq!(enter(&mut model, "hello"), [query("hello")]);
    assert_eq!(accept(&mut model, "hello"), []);
    model
}

fn token(model: &mut Model, text: &str, kind: &str, offset: usize) {
    let meta = json!({ "type": kind, "offset": offset });
    let params = json!({ "query_id": "q-1", "token": text, "metadata": meta });
    assert_eq!(receive(model, "stream.token", params), []);
}

fn complete(model: &mut Model, status: &str) -> Vec<Request> {
    let figures = json!({ "total_tokens": 9, "model_used": "demo/large" });
    receive(
        model,
        "stream.complete",
        json!({ "query_id": "q-1", "status": status, "metadata": figures }),
    )
}

fn entries(model: &Model) -> Vec<EntryKind> {
    model.transcript.entries().iter().map(|entry| entry.kind.clone()).collect()
}

fn prose(text: &str) -> EntryKind {
    EntryKind::AnswerText { text: text.into(), open: false }
}

fn approval(model: &mut Model) {
    let params = json!({
        "execution_id": "exec-1", "query_id": "q-1", "timeout": 30,
        "tool": { "name": "shell", "description": "shell rm x" },
        "risk_assessment": { "level": "high", "reasons": ["deletes"] },
    });
    assert_eq!(receive(model, "tool.request_approval", params), []);
}

#[test]
fn tokens_are_shown_at_once_and_blocks_are_not_shown_twice() {
    let mut model = with_running_query();
    token(&mut model, "See ", "text", 0);
    token(&mut model, "this:\n", "text", 4);
    let text = json!({ "type": "text", "content": "See this:" });
    receive(&mut model, "stream.block", json!({ "query_id": "q-1", "block": text }));
    token(&mut model, "```rust\nfn a() {}\n", "code", 10);
    assert_eq!(entries(&model)[2], EntryKind::OpenBlock("```rust\nfn a() {}\n".into()));
    token(&mut model, "```\n", "code", 28);
    let code = json!({ "type": "code", "language": "rust", "content": "fn a() {}" });
    receive(&mut model, "stream.block", json!({ "query_id": "q-1", "block": code }));
    token(&mut model, "Done.", "text", 32);
    assert_eq!(model.chat.running.as_ref().unwrap().received_bytes, 37);
    assert_eq!(complete(&mut model, "success"), []);

    let shown = entries(&model);
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert_eq!(shown[0], EntryKind::UserText("hello".into()));
    assert_eq!((&shown[1], &shown[3]), (&prose("See this:\n"), &prose("Done.")));
    assert!(matches!(&shown[2], EntryKind::Block(block) if block.language == "rust"));
    assert_eq!((model.chat.tokens, model.chat.model.as_deref()), (9, Some("demo/large")));
    assert_eq!(model.chat.running, None);
}

#[test]
fn code_that_a_server_sends_as_prose_is_shown() {
    let mut model = with_running_query();
    token(&mut model, "```sh\nls\n```\n", "text", 0);
    let code = json!({ "type": "code", "language": "sh", "content": "ls" });
    receive(&mut model, "stream.block", json!({ "query_id": "q-1", "block": code }));
    assert_eq!(entries(&model).len(), 2);
    let code = json!({ "type": "code", "language": "sh", "content": "pwd" });
    receive(&mut model, "stream.block", json!({ "query_id": "q-1", "block": code }));
    assert_eq!(entries(&model).len(), 3, "a new block is shown");
}

#[test]
fn messages_during_a_query_are_queued() {
    let mut model = with_running_query();
    assert_eq!(enter(&mut model, "next"), []);
    assert_eq!(complete(&mut model, "success"), [query("next")]);
}

#[test]
fn ctrl_c_stops_the_answer_and_twice_quits() {
    let mut model = with_running_query();
    assert_eq!(ctrl(&mut model, 'c'), [Request::Cancel { query: "q-1".into() }]);
    assert!(!model.leaving);
    complete(&mut model, "cancelled");
    assert_eq!(entries(&model).last(), Some(&EntryKind::Note("stopped".into())));
    ctrl(&mut model, 'c');
    assert!(model.leaving, "the second Ctrl-C quits");

    let mut model = started();
    update(&mut model, Message::Paste("half".into()));
    ctrl(&mut model, 'c');
    assert!(model.editor.is_empty() && !model.leaving);
    press(&mut model, KeyCode::Char('x'));
    ctrl(&mut model, 'c');
    assert!(!model.leaving, "a key in between resets the confirmation");
    ctrl(&mut model, 'c');
    assert!(model.leaving);
}

#[test]
fn a_cancel_before_the_query_is_accepted_is_sent_later() {
    let mut model = started();
    enter(&mut model, "hello");
    assert_eq!(ctrl(&mut model, 'c'), []);
    assert_eq!(accept(&mut model, "hello"), [Request::Cancel { query: "q-1".into() }]);
}

#[test]
fn an_approval_is_answered_with_a_key() {
    for (letter, decision) in [
        ('y', Decision::Once),
        ('a', Decision::Same),
        ('s', Decision::Similar),
        ('n', Decision::No),
    ] {
        let mut model = with_running_query();
        approval(&mut model);
        update(&mut model, Message::Tick);
        update(&mut model, Message::Tick);
        let requests = press(&mut model, KeyCode::Char(letter));
        assert_eq!(requests, [Request::Approve { execution: "exec-1".into(), decision }]);
        assert!(model.chat.approvals.is_empty());
    }
}

#[test]
fn a_question_of_a_call_is_answered_with_a_digit() {
    let choices = json!([
        { "label": "test", "content": { "env": "test" } },
        { "label": "live", "content": { "env": "live" } },
    ]);
    let ask = |model: &mut Model, choices: &serde_json::Value| {
        let params = json!({
            "execution_id": "exec-question_1", "query_id": "q-1", "tool": { "name": "db__ask" },
            "choices": choices,
        });
        receive(model, "tool.request_approval", params);
    };
    let mut model = with_running_query();
    ask(&mut model, &choices);
    assert_eq!(press(&mut model, KeyCode::Char('2')), []);
    update(&mut model, Message::Tick);
    update(&mut model, Message::Tick);
    for letter in ['y', 'a', 's', '0', '3'] {
        assert_eq!(press(&mut model, KeyCode::Char(letter)), []);
    }
    let content = json!({ "env": "live" });
    let live = Request::Answer { execution: "exec-question_1".into(), content };
    assert_eq!(press(&mut model, KeyCode::Char('2')), [live]);
    ask(&mut model, &json!([]));
    let progress = json!({ "status": "cancelled", "message": "the call that asked is over" });
    let over = json!({ "execution_id": "exec-question_1", "progress": progress });
    receive(&mut model, "tool.progress", over);
    assert!(model.chat.approvals.is_empty());
}

#[test]
fn keys_right_after_a_request_appears_are_ignored() {
    let mut model = with_running_query();
    approval(&mut model);
    assert_eq!(press(&mut model, KeyCode::Char('y')), []);
    assert_eq!(press(&mut model, KeyCode::Enter), []);
    assert_eq!(update(&mut model, Message::Paste("y".into())), []);
    assert_eq!(model.chat.approvals.len(), 1);
    let no = Request::Approve { execution: "exec-1".into(), decision: Decision::No };
    assert_eq!(press(&mut model, KeyCode::Esc), [no]);
}

#[test]
fn a_request_disappears_when_it_is_answered_elsewhere_or_its_query_ends() {
    let mut model = with_running_query();
    approval(&mut model);
    let progress = json!({ "status": "denied", "message": "nobody answered in time" });
    receive(&mut model, "tool.progress", json!({ "execution_id": "exec-1", "progress": progress }));
    assert!(model.chat.approvals.is_empty());
    approval(&mut model);
    complete(&mut model, "timeout");
    assert!(model.chat.approvals.is_empty());
}

#[test]
fn a_call_is_one_line_from_start_to_end() {
    let mut model = with_running_query();
    let progress = json!({ "status": "started", "message": "Running shell" });
    receive(&mut model, "tool.progress", json!({ "execution_id": "exec-1", "progress": progress }));
    let result = json!({ "files_modified": ["a", "b"], "duration_ms": 12 });
    let done = json!({ "execution_id": "exec-1", "tool_name": "shell", "status": "success", "result": result });
    receive(&mut model, "tool.complete", done);
    let about = json!({ "execution_id": "exec-1" });
    let block = json!({ "type": "tool_output", "content": "out", "metadata": about });
    for _ in 0..2 {
        receive(&mut model, "stream.block", json!({ "query_id": "q-1", "block": block }));
    }
    let EntryKind::Tool(tool) = &entries(&model)[1] else { panic!() };
    assert_eq!((tool.name.as_str(), tool.message.as_str()), ("shell", "12 ms, changed a, b"));
    assert_eq!(entries(&model).len(), 3, "the output is shown once");
}

#[test]
fn an_answer_continues_after_a_reconnect() {
    let mut model = with_running_query();
    token(&mut model, "half", "text", 0);
    update(&mut model, Message::Lost);
    assert!(model.is_busy() && !model.chat.online);
    update(&mut model, Message::Paste("later".into()));
    assert_eq!(press(&mut model, KeyCode::Enter), []);
    assert_eq!(model.editor.text(), "later", "the unsent message is kept");

    let load = Request::Load { session: "session-1".into(), received_bytes: Some(4) };
    assert_eq!(update(&mut model, Message::Back(json!({}))), vec![load.clone()]);
    let open = json!([{ "query_id": "q-1" }]);
    let result = json!({ "session_id": "session-1", "messages": [], "running_queries": open });
    assert_eq!(update(&mut model, Message::Answer(load, Ok(result))), []);
    token(&mut model, " and whole", "text", 4);
    complete(&mut model, "success");
    assert_eq!(entries(&model)[1], prose("half and whole"));
}

#[test]
fn a_query_that_ended_during_a_disconnect_is_shown() {
    let mut model = with_running_query();
    token(&mut model, "half", "text", 0);
    update(&mut model, Message::Lost);
    let load = update(&mut model, Message::Back(json!({}))).remove(0);
    let messages = json!([
        { "role": "user", "content": "hello" }, { "role": "assistant", "content": "half and whole" },
    ]);
    let result = json!({ "session_id": "session-1", "messages": messages, "running_queries": [] });
    update(&mut model, Message::Answer(load, Ok(result)));
    assert_eq!(entries(&model), [EntryKind::UserText("hello".into()), prose("half and whole")]);
    assert_eq!(model.chat.running, None);
}

#[test]
fn a_query_that_was_not_sent_is_reported() {
    let mut model = started();
    enter(&mut model, "hello");
    update(&mut model, Message::Lost);
    assert_eq!(update(&mut model, Message::Back(json!({}))), []);
    assert!(matches!(entries(&model).last(), Some(EntryKind::Error(_))));
    assert_eq!(model.chat.running, None);
}

fn listed() -> Model {
    let mut model = started();
    assert_eq!(ctrl(&mut model, 'l'), [Request::List]);
    let sessions = json!([
        { "session_id": "session-1", "title": "Fix the build", "updated_at": "2026-11-16T04:00:00+00:00" },
        { "session_id": "session-2", "title": "Write a poem", "workspace": "/home/me" },
    ]);
    update(&mut model, Message::Answer(Request::List, Ok(json!({ "sessions": sessions }))));
    model
}

#[test]
fn sessions_are_found_by_typing_and_opened() {
    let mut model = listed();
    for letter in "poem ME".chars() {
        press(&mut model, KeyCode::Char(letter));
    }
    assert_eq!(press(&mut model, KeyCode::Enter), []);
    assert!(std::mem::take(&mut model.chat.reconnect), "another session needs another connection");
    let load = update(&mut model, Message::Back(json!({}))).remove(0);
    assert_eq!(load, Request::Load { session: "session-2".into(), received_bytes: None });
    let messages = json!([
        { "role": "user", "content": "begin" }, { "role": "assistant", "content": "told again" },
    ]);
    let open = json!([{ "query_id": "q-1" }]);
    let result =
        json!({ "session_id": "session-2", "messages": messages, "running_queries": open });
    update(&mut model, Message::Answer(load, Ok(result)));
    assert_eq!(
        entries(&model),
        [EntryKind::UserText("begin".into())],
        "the answer comes again as it is written"
    );
    assert!(model.chat.running.is_some());
}

#[test]
fn deleting_a_session_needs_confirmation() {
    let mut model = listed();
    press(&mut model, KeyCode::Delete);
    assert_eq!(press(&mut model, KeyCode::Char('n')), []);
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Delete);
    let delete = Request::Delete { session: "session-2".into() };
    assert_eq!(press(&mut model, KeyCode::Char('y')), vec![delete.clone()]);
    update(&mut model, Message::Answer(delete, Ok(json!({}))));
    let Pane::Sessions(sessions) = &model.pane else { panic!() };
    assert_eq!(sessions.shown().len(), 1);
}

#[test]
fn commands_are_executed_and_unknown_ones_reported() {
    let mut model = started();
    enter(&mut model, "/help");
    assert!(matches!(model.pane, Pane::Help));
    press(&mut model, KeyCode::Esc);
    enter(&mut model, "/model demo/large");
    let wanted = Request::Query { text: "hi".into(), model: Some("demo/large".into()) };
    assert_eq!(enter(&mut model, "hi"), [wanted]);
    enter(&mut model, "/nonsense");
    assert!(model.hint.as_ref().unwrap().contains("/nonsense"));
    enter(&mut model, "/new");
    assert!(model.chat.reconnect && model.transcript.is_empty());
    enter(&mut model, "/quit");
    assert!(model.leaving);
}

#[test]
fn an_error_is_shown_and_the_next_query_can_be_sent() {
    let mut model = started();
    enter(&mut model, "hello");
    let fault = RpcError { code: -32005, message: "too many".into() };
    update(&mut model, Message::Answer(query("hello"), Err(fault)));
    assert_eq!(entries(&model).last(), Some(&EntryKind::Error("too many".into())));
    assert_eq!(enter(&mut model, "again"), [query("again")]);
}

#[test]
fn a_resize_is_sent_to_the_daemon() {
    let mut model = started();
    let size = Size { cols: 100, rows: 30 };
    assert_eq!(update(&mut model, Message::Resize(size)), [Request::Context(size)]);
}

#[test]
fn prompts_of_servers_are_commands() {
    let mut model = Model::new(Size { cols: 80, rows: 24 }, None, None);
    update(&mut model, Message::Back(json!({ "models": [] })));
    assert_eq!(press(&mut model, KeyCode::Char('/')), [Request::Prompts]);
    let listed = json!({ "prompts": [
        { "name": "fix:ask", "description": "Asks something.\nAt length.", "arguments": "what" },
    ] });
    update(&mut model, Message::Answer(Request::Prompts, Ok(listed)));
    update(&mut model, Message::Paste("fix".into()));
    let offered = model.offered_commands();
    assert_eq!((&*offered[0].arguments, &*offered[0].help), (" what", "Asks something."));
    press(&mut model, KeyCode::Tab);
    assert_eq!(model.editor.text(), "/fix:ask ");
    update(&mut model, Message::Paste("why".into()));
    let sent = press(&mut model, KeyCode::Enter);
    assert_eq!(sent, [Request::Query { text: "/fix:ask why".into(), model: None }]);
    update(&mut model, Message::Paste("/fix:other".into()));
    assert_eq!(press(&mut model, KeyCode::Enter), []);
    assert!(model.hint.as_deref().is_some_and(|hint| hint.contains("unknown command")));
}
