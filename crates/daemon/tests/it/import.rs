//! Tests of importing transcripts of other agents.

use serde_json::json;

use crate::acp::editor::Editor;
use crate::daemon::{World, quintet};

const CODEX: &str = r#"{"type":"session_meta","payload":{"id":"u-1","cwd":"/w"}}
{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"how many files?"}]}}
{"type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"call_1","output":"a b"}}
{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two files"}]}}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_is_imported_once_and_can_be_continued() {
    let world = World::start("").await;
    let (config, file) =
        (world.home.path().join("quintet.toml"), world.home.path().join("rollout-1.jsonl"));
    std::fs::write(&file, CODEX).unwrap();
    let import = |path: &str| {
        let output =
            quintet(&["import", "--config", config.to_str().unwrap(), path]).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap(), output.stderr)
    };
    let (well, first, errors) = import(file.to_str().unwrap());
    assert!(well, "{}", String::from_utf8_lossy(&errors));
    assert!(first.contains("codex  4 messages  imported\n"), "{first}");
    let (_, again, _) = import(file.to_str().unwrap());
    assert!(again.contains("imported before"), "{again}");
    let session = first.split_whitespace().next().unwrap();
    assert!(again.starts_with(session));
    let mut editor = Editor::ready(&world, json!({}));
    let opened = editor.load(&world, session);
    opened.unwrap();
    assert_eq!(editor.text("user_message_chunk"), "how many files?");
    assert_eq!(editor.text("agent_message_chunk"), "two files");
    let calls = editor.updates("tool_call");
    assert_eq!((calls.len(), &calls[0]["status"]), (1, &json!("completed")));
    let id = editor.prompt(session, "are you sure?");
    editor.answer(id).unwrap();
    let asked = world.model.calls().last().unwrap().to_string();
    for part in ["how many files?", "call_1", "a b", "two files", "are you sure?"] {
        assert!(asked.contains(part), "{part} is not in {asked}");
    }
    std::fs::write(&file, "{}").unwrap();
    let (well, _, errors) = import(file.to_str().unwrap());
    assert!(!well);
    assert!(String::from_utf8_lossy(&errors).contains("not a transcript"));
}
