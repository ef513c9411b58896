//! Tools that the desktop runs.

use serde_json::{Value, json};

use super::{NO_APPROVALS, offered};
use crate::daemon::World;
use crate::desktop::{events, open_app, scripted, text};

#[tokio::test]
async fn a_turn_waits_for_the_desktop() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let script =
        json!([{ "text": "Opening it.", "tools": [open_app("calendar")] }, { "text": "Done." }]);
    let mut frames = desktop.chat(&id, script).await;
    let request = frames.next_of("tool.request").await;
    let call = request.data["id"].as_str().unwrap();
    let expected = json!({
        "id": call, "name": "open_app", "arguments": { "app_id": "calendar" },
        "risk": "risky", "reason": "Opening it.",
    });
    assert_eq!(request.data, expected);
    desktop.done(&id, &request, "Launched Calendar").await;
    let rest = frames.rest().await;
    assert_eq!(events(&rest), ["tool.result", "assistant.delta", "assistant.final"]);
    let result = json!({ "id": call, "ok": true, "result": "Launched Calendar", "error": null });
    assert_eq!(rest[0].data, result);
    assert_eq!(rest[rest.len() - 1].data, json!({ "text": "Done." }));
    assert!(world.model.calls()[1].to_string().contains("Launched Calendar"));
    let names = offered(&world);
    assert!(names.contains(&"open_app".into()) && names.contains(&"run_whitelisted".into()));
    assert!(!names.contains(&"shell".into()), "{names:?}");
}

#[tokio::test]
async fn a_denial_reaches_the_model_and_the_turn_continues() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let script = json!([{ "tools": [open_app("bank")] }, { "text": "As you wish." }]);
    let mut frames = desktop.chat(&id, script).await;
    let call = frames.next_of("tool.request").await.data["id"].clone();
    let denied = json!({ "id": call, "ok": false, "error": "denied" });
    assert_eq!(desktop.result(&id, denied).await.0, 200);
    let rest = frames.rest().await;
    let result = json!({ "id": call, "ok": false, "result": null, "error": "denied" });
    assert_eq!((&rest[0].data, text(&rest)), (&result, "As you wish.".into()));
    assert!(world.model.calls()[1].to_string().contains("denied"));
}

#[tokio::test]
async fn calls_of_a_step_are_sent_together_and_return_in_any_order() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let tools = json!([open_app("a"), open_app("b"), open_app("c")]);
    let mut frames = desktop.chat(&id, json!([{ "tools": tools }, { "text": "All." }])).await;
    let mut requests = Vec::new();
    for _ in 0..3 {
        requests.push(frames.next_of("tool.request").await);
    }
    for request in requests.iter().rev() {
        let app = request.data["arguments"]["app_id"].as_str().unwrap();
        desktop.done(&id, request, &format!("result of {app}")).await;
    }
    assert_eq!(text(&frames.rest().await), "All.");
    let messages = world.model.calls()[1]["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<&str> = results.map(|message| message["content"].as_str().unwrap()).collect();
    assert_eq!(results, ["result of a", "result of b", "result of c"]);
}

#[tokio::test]
async fn unexpected_results_are_refused() {
    let world = World::start(NO_APPROVALS).await;
    let desktop = world.desktop();
    let (id, other) = (desktop.session("j_1").await, desktop.session("j_2").await);
    let mut frames = desktop.chat(&id, json!([{ "tools": [open_app("a")] }])).await;
    let request = frames.next_of("tool.request").await;
    let call = request.data["id"].clone();
    let refused = async |session: &str, call: &Value| {
        let (status, body) = desktop.result(session, json!({ "id": call, "ok": true })).await;
        (status, body["error"]["code"].as_str().unwrap().to_owned())
    };
    let unknown = (404, "TOOL_CALL_NOT_FOUND".to_owned());
    assert_eq!(refused(&id, &json!("toolcall_x")).await, unknown);
    assert_eq!(refused(&other, &call).await, unknown);
    assert_eq!(refused("sess_none", &call).await, (404, "SESSION_NOT_FOUND".into()));
    desktop.done(&id, &request, "ok").await;
    assert_eq!(refused(&id, &call).await, (409, "TOOL_CALL_COMPLETED".into()));
    frames.rest().await;
    assert_eq!(refused(&id, &call).await, (409, "TOOL_CALL_COMPLETED".into()));
}

#[tokio::test]
async fn a_restart_during_a_call_loses_nothing() {
    let mut world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let message = scripted(&json!([
        { "text": "One moment.", "tools": [open_app("a"), open_app("b")] },
        { "text": "Done." },
    ]));
    let mut frames = desktop.say(&id, &message, &[]).await;
    let (one, two) = (frames.next_of("tool.request").await, frames.next_of("tool.request").await);
    desktop.done(&id, &one, "first").await;
    world.kill();
    world.restart();
    let desktop = world.desktop();
    // Another desktop may be running the pending call, so a desktop that only follows is not sent it.
    let mut other = desktop.follow(&id, None).await;
    // A desktop that resumes at its position is sent only the pending call.
    let mut follower = desktop.follow(&id, Some(&two.id)).await;
    assert_eq!(follower.next_of("tool.request").await.data, two.data);
    // A desktop that sends the message again gets the turn so far, without answered calls. The follower
    // holds the pending call, so it must be gone.
    drop(follower);
    let mut again = desktop.say(&id, &message, &[]).await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|frame: &crate::desktop::Frame| frame.event != "tool.request") {
        seen.push(again.next().await.unwrap());
    }
    assert_eq!((&seen[seen.len() - 1].data, text(&seen)), (&two.data, "One moment.".into()));
    desktop.done(&id, &two, "second").await;
    seen.extend(again.rest().await);
    // The second call is sent once it is claimed, before or after the result of the first one.
    let (results, others): (Vec<_>, Vec<_>) =
        seen.iter().partition(|frame| frame.event == "tool.result");
    assert_eq!(results[0].data["id"], one.data["id"], "the result of the first call");
    let others: Vec<&str> = others.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(others[..2], ["assistant.delta", "tool.request"]);
    assert_eq!(seen[seen.len() - 1].data, json!({ "text": "Done." }));
    let seen = other.turn().await;
    assert!(seen.iter().all(|frame| frame.event != "tool.request"), "{seen:#?}");
    assert_eq!(world.model.calls().len(), 2);
}

#[tokio::test]
async fn two_desktops_never_both_run_a_call() {
    let world = World::start("[clients]\ngrace_seconds = 1\n").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let mut watching = desktop.follow(&id, None).await;
    let script = json!([{ "tools": [open_app("a"), open_app("b")] }, { "text": "Done." }]);
    let mut asking = desktop.chat(&id, script).await;
    let mut late = desktop.follow(&id, None).await;
    // Each call is sent to one of the streams.
    let mut requests = Vec::new();
    while requests.len() < 2 {
        let request = tokio::select! {
            request = asking.next_of("tool.request") => request,
            request = watching.next_of("tool.request") => request,
            request = late.next_of("tool.request") => request,
        };
        requests.push(request);
    }
    for request in &requests {
        desktop.done(&id, request, "launched").await;
    }
    let received = [asking.turn().await, watching.turn().await, late.turn().await].concat();
    assert!(received.iter().all(|frame| frame.event != "tool.request"), "{received:#?}");
    assert_ne!(requests[0].data["id"], requests[1].data["id"]);
}

#[tokio::test]
async fn the_desktop_that_sent_the_message_claims_calls_first() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let mut watching = desktop.follow(&id, None).await;
    let script = json!([
        { "tools": [open_app("a"), open_app("b")] },
        { "tools": [open_app("c")] },
        { "text": "Done." },
    ]);
    let mut asking = desktop.chat(&id, script).await;
    for _ in 0..3 {
        let request = asking.next_of("tool.request").await;
        desktop.done(&id, &request, "launched").await;
    }
    asking.rest().await;
    let seen = watching.turn().await;
    assert!(seen.iter().all(|frame| frame.event != "tool.request"), "{seen:#?}");
}

#[tokio::test]
async fn a_desktop_cannot_run_the_tools_of_other_front_ends() {
    let world = World::start("").await;
    let (desktop, mut socket) = (world.desktop(), world.socket().await);
    let session = socket.create(world.workspace()).await;
    let open = json!({ "jarvis_session_id": "j_1", "preferred_session_id": session });
    assert_eq!(desktop.open(open).await, session);
    let mut frames = desktop.follow(&session, None).await;
    let question = json!({ "name": "ask_user", "args": { "question": "why?" } });
    let script = json!([{ "tools": [open_app("a"), question] }, { "text": "Done." }]);
    socket.say(&session, script).await.unwrap();
    let received = socket.until_notified("agent.question").await;
    let questions: Vec<&Value> =
        received.iter().filter(|frame| frame["method"] == "agent.question").collect();
    let call = &questions[0]["params"]["toolCallId"];
    assert_eq!((questions.len(), &questions[0]["params"]["toolName"]), (1, &json!("ask_user")));
    let request = frames.next_of("tool.request").await;
    assert_eq!(request.data["name"], "open_app");
    // Neither can return results for the other.
    let (status, body) = desktop.result(&session, json!({ "id": call, "ok": true })).await;
    assert_eq!((status, &body["error"]["code"]), (409, &json!("TOOL_CALL_NOT_PENDING")));
    let answer = json!({ "sessionId": session, "response": "because" });
    socket.ask("agent.respond", answer.clone()).await.unwrap();
    assert_eq!(socket.ask("agent.respond", answer).await.unwrap_err()["code"], -32602);
    desktop.done(&session, &request, "launched").await;
    let rest = frames.turn().await;
    assert!(rest.iter().all(|frame| frame.event != "tool.request"), "{rest:#?}");
}

#[tokio::test]
async fn a_call_of_a_desktop_that_stays_away_has_an_unknown_outcome() {
    let world = World::start("[clients]\ngrace_seconds = 1\n").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let script = json!([{ "tools": [open_app("a")] }, { "text": "I do not know." }]);
    let mut gone = desktop.chat(&id, script).await;
    let request = gone.next_of("tool.request").await;
    let mut other = desktop.follow(&id, None).await;
    drop(gone);
    let received = other.turn().await;
    assert_eq!(
        received.iter().filter(|frame| frame.event == "tool.request").count(),
        0,
        "{received:#?}"
    );
    let result = received.iter().find(|frame| frame.event == "tool.result").unwrap();
    assert_eq!((&result.data["id"], &result.data["ok"]), (&request.data["id"], &json!(false)));
    let received = world.model.calls()[1].to_string();
    assert!(received.contains("what came of it is not known"), "{received}");
}

#[tokio::test]
async fn repeated_calls_with_equal_arguments_are_allowed() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let mut script = vec![json!({ "tools": [open_app("status")] }); 6];
    script.push(json!({ "text": "Ready." }));
    let mut frames = desktop.chat(&id, json!(script)).await;
    for _ in 0..6 {
        let request = frames.next_of("tool.request").await;
        desktop.done(&id, &request, "not yet").await;
    }
    assert_eq!(text(&frames.rest().await), "Ready.");
}

#[tokio::test]
async fn an_answer_without_streaming_waits_for_tools() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let mut follower = desktop.follow(&id, None).await;
    let message = scripted(&json!([{ "tools": [open_app("a")] }, { "text": "There." }]));
    let answer = desktop.ask(&id, &message);
    let run = async {
        let request = follower.next_of("tool.request").await;
        desktop.done(&id, &request, "ok").await;
    };
    let ((status, body), ()) = tokio::join!(answer, run);
    assert_eq!((status, &body["assistant"]["parts"][0]["text"]), (200, &json!("There.")));
}

#[tokio::test]
async fn a_timeout_is_reported_to_the_desktop_and_the_model() {
    let config = format!("{NO_APPROVALS}[jarvis]\ntool_timeout = 1\n");
    let world = World::start(&config).await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let script = json!([{ "tools": [open_app("a")] }, { "text": "It did not answer." }]);
    let frames = desktop.chat(&id, script).await.rest().await;
    assert_eq!(
        events(&frames),
        ["tool.request", "tool.result", "error", "assistant.delta", "assistant.final"]
    );
    let late = json!({ "code": "TOOL_TIMEOUT", "message": "Tool execution timed out." });
    assert_eq!((&frames[1].data["error"], &frames[2].data), (&late, &late));
    let (status, _) = desktop.result(&id, json!({ "id": frames[0].data["id"], "ok": true })).await;
    assert_eq!(status, 409);
    assert!(world.model.calls()[1].to_string().contains("Tool execution timed out."));
}

#[tokio::test]
async fn tools_come_from_the_configuration_and_from_the_desktop() {
    let config = format!(
        "{NO_APPROVALS}[[jarvis.tools]]\nname = \"wipe_disk\"\nrisk = \"forbidden\"\n\
         [[jarvis.tools]]\nname = \"lock\"\ndescription = \"Locks.\"\nrisk = \"safe\"\n\
         [jarvis.tools.parameters]\ntype = \"object\"\n"
    );
    let world = World::start(&config).await;
    let desktop = world.desktop();
    let parameters = json!({ "type": "object", "properties": { "to": { "type": "string" } } });
    let own = json!([{ "name": "notify", "description": "Says.", "parameters": parameters, "risk": "safe" }]);
    let id = desktop.open(json!({ "jarvis_session_id": "j_1", "tools": own })).await;
    let call = |name: &str| json!({ "name": name, "args": {} });
    let tools = json!([call("wipe_disk"), call("lock"), call("notify")]);
    let mut frames = desktop.chat(&id, json!([{ "tools": tools }, { "text": "Ok." }])).await;
    // Forbidden calls are never sent.
    let (lock, notify) =
        (frames.next_of("tool.request").await, frames.next_of("tool.request").await);
    assert_eq!((&lock.data["name"], &lock.data["risk"]), (&json!("lock"), &json!("safe")));
    assert_eq!(notify.data["name"], "notify");
    desktop.done(&id, &lock, "locked").await;
    desktop.done(&id, &notify, "said").await;
    assert_eq!(events(&frames.rest().await), ["tool.result", "assistant.delta", "assistant.final"]);
    assert!(world.model.calls()[1].to_string().contains("wipe_disk is forbidden"));
    let schemas = world.model.calls()[0]["tools"].to_string();
    assert!(schemas.contains("notify") && schemas.contains("\"to\""), "{schemas}");
    let bad = json!({ "jarvis_session_id": "j_2", "tools": [{ "name": "a b" }] });
    let (status, body) = desktop.client.post("/v1/sessions", bad).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("INVALID_TOOLS")));
}

#[tokio::test]
async fn tools_registered_during_a_turn_wait_for_the_next_message() {
    let world = World::start(NO_APPROVALS).await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let script = json!([{ "tools": [open_app("a")] }, { "text": "Done." }]);
    let mut frames = desktop.chat(&id, script).await;
    let request = frames.next_of("tool.request").await;
    let own = json!([{ "name": "notify", "description": "Says.", "risk": "safe" }]);
    desktop.open(json!({ "jarvis_session_id": "j_1", "tools": own })).await;
    desktop.done(&id, &request, "launched").await;
    frames.rest().await;
    assert!(!offered(&world).contains(&"notify".into()), "{:?}", offered(&world));
    desktop.chat(&id, json!([{ "text": "Yes." }])).await.rest().await;
    assert!(offered(&world).contains(&"notify".into()), "{:?}", offered(&world));
}

#[tokio::test]
async fn tools_of_the_daemon_are_approved_by_other_clients() {
    let config = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n\
                  [jarvis]\ndaemon_tools = [\"shell\"]\n";
    let world = World::start(config).await;
    let (client, desktop) = (world.client(), world.desktop());
    let id = desktop.session("j_1").await;
    let shell = json!({ "name": "shell", "args": { "command": "echo from-the-shell" } });
    let frames = desktop.chat(&id, json!([{ "tools": [shell] }, { "text": "Done." }])).await;
    let asked = client.until(&id, |event| event.kind() == "approval_requested").await;
    let call = asked[asked.len() - 1].json["data"]["tool_call_id"].as_str().unwrap().to_owned();
    assert_eq!(client.approve(&id, &call, "approve").await.0, 200);
    // The desktop is sent nothing about it.
    assert_eq!(events(&frames.rest().await), ["assistant.delta", "assistant.final"]);
    assert!(world.model.calls()[1].to_string().contains("from-the-shell"));
    assert!(offered(&world).contains(&"memory_search".into()));
}
