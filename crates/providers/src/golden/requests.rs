//! Tests of one conversation as a request of each family, with earlier answers of any family in it.

use std::collections::HashSet;
use std::path::PathBuf;

use quintet_kernel::model::{Effort, ModelRef, Profile, Prompt, SearchSupport, WebSearch};
use serde_json::Value;

use super::{check, conversation, families, path, streams};
use crate::facts::{Facts, Thinking, all_media};
use crate::family::{Family, ModelRequest};
use crate::quirks::Quirks;

fn facts(thinking: Thinking) -> Facts {
    let profile = Profile {
        inputs: all_media(),
        tools: true,
        context_window: None,
        search: SearchSupport::Never,
    };
    let efforts = vec![Effort::Low, Effort::Medium, Effort::High];
    Facts { profile, thinking, max_output: Some(64_000), efforts }
}

fn sent(family: &dyn Family, prompt: &Prompt, thinking: Thinking) -> Value {
    let search = prompt.search == WebSearch::Native;
    let tools = family.tools(&prompt.tools, search).unwrap();
    let quirks = Quirks { thoughts_back: true, ..Quirks::default() };
    let facts = facts(thinking);
    let model_request =
        ModelRequest { prompt, facts: &facts, quirks: &quirks, tools: Some(&tools), search };
    serde_json::from_slice(&family.body(&model_request).unwrap()).unwrap()
}

fn other() -> ModelRef {
    ModelRef { provider: "other".into(), model: "another-model".into() }
}

/// The stream of a family in which a model thinks and calls tools.
fn most_complete_stream(name: &str) -> PathBuf {
    let calls = |path: &PathBuf| path.to_string_lossy().contains("parallel_calls");
    streams::files(name).into_iter().find(calls).unwrap()
}

#[test]
fn a_conversation_becomes_a_request() {
    for (name, family) in families() {
        let own =
            conversation::with(family, &most_complete_stream(name), conversation::called_model());
        let thinking = if name == "anthropic" { Thinking::Budget } else { Thinking::Effort };
        let body = sent(family, &own, thinking);
        check(&path(name).join("request.json"), &format!("{body:#}\n"));
        let foreign = conversation::with(family, &most_complete_stream(name), other());
        let body = sent(family, &foreign, thinking);
        check(&path(name).join("request_after_switching.json"), &format!("{body:#}\n"));
    }
}

#[test]
fn a_side_prompt_lists_the_tools_and_forbids_them() {
    for (name, family) in families() {
        let prompt =
            conversation::with(family, &most_complete_stream(name), conversation::called_model());
        let body = sent(family, &Prompt { may_call: false, ..prompt }, Thinking::Effort);
        let (forbidden, tools) = match name {
            "gemini" => (&body["toolConfig"]["functionCallingConfig"]["mode"], &body["tools"]),
            "anthropic" => (&body["tool_choice"]["type"], &body["tools"]),
            _ => (&body["tool_choice"], &body["tools"]),
        };
        let word = forbidden.as_str().map(str::to_lowercase);
        assert_eq!(word.as_deref(), Some("none"), "{name}: {body:#}");
        assert!(tools.is_array(), "{name}");
    }
}

#[test]
fn answers_of_any_family_are_valid_in_requests_of_every_other() {
    let styles = [Thinking::Never, Thinking::Unknown, Thinking::Effort, Thinking::Budget];
    for (from, writer) in families() {
        for stream in streams::files(from) {
            for by in [conversation::called_model(), other()] {
                let prompt = conversation::with(writer, &stream, by);
                for (to, reader) in families() {
                    for thinking in styles.into_iter().chain([Thinking::Adaptive]) {
                        let body = sent(reader, &prompt, thinking);
                        let what = format!("{} to {to}", stream.display());
                        valid(to, &body, &what);
                    }
                }
            }
        }
    }
}

/// The families whose providers search, each with a stream that contains a search.
fn searching() -> impl Iterator<Item = (&'static str, &'static dyn Family, PathBuf)> {
    let able =
        families().into_iter().filter(|(_, family)| family.searches() != SearchSupport::Never);
    able.map(|(name, family)| (name, family, path(name).join("web_search.sse")))
}

#[test]
fn a_search_is_requested_and_sent_back() {
    assert_eq!(searching().count(), 3);
    for (name, family, stream) in searching() {
        let mut prompt = conversation::with(family, &stream, conversation::called_model());
        prompt.search = WebSearch::Native;
        if family.searches() == SearchSupport::WithoutTools {
            prompt.tools.clear();
        }
        let body = sent(family, &prompt, Thinking::Effort);
        valid(name, &body, name);
        check(&path(name).join("request_with_search.json"), &format!("{body:#}\n"));
        let foreign = conversation::with(family, &stream, other());
        let body = sent(family, &Prompt { search: WebSearch::Native, ..foreign }, Thinking::Effort);
        valid(name, &body, name);
        // A search of one model is not sent to another, in whose history it would make no sense.
        let blocks = body["messages"].to_string() + &body["input"].to_string();
        assert!(!blocks.contains("web_search"), "{name}: {blocks}");
    }
}

#[test]
fn a_side_prompt_has_no_search() {
    for (name, family, stream) in searching() {
        let prompt = conversation::with(family, &stream, conversation::called_model());
        let prompt = Prompt { search: WebSearch::Native, may_call: false, ..prompt };
        let body = sent(family, &prompt, Thinking::Effort);
        let choice = body["tool_choice"]["type"].as_str().or(body["tool_choice"].as_str());
        assert!(choice == Some("none") || body["tools"].is_null(), "{name}: {body:#}");
    }
}

fn valid(family: &str, body: &Value, what: &str) {
    match family {
        "openai_chat" => valid_chat(body, what),
        "openai_responses" => valid_responses(body, what),
        "anthropic" => valid_messages(body, what),
        "gemini" => valid_contents(body, what),
        other => panic!("there is no check for {other}"),
    }
}

fn list<'a>(value: &'a Value, what: &str) -> &'a [Value] {
    value.as_array().unwrap_or_else(|| panic!("{what}: {value} is no list"))
}

/// Every call has one result before the next message.
fn valid_chat(body: &Value, what: &str) {
    let mut due: Vec<&Value> = Vec::new();
    for message in list(&body["messages"], what) {
        match message["role"].as_str() {
            Some("tool") => {
                let at = due.iter().position(|id| **id == message["tool_call_id"]);
                due.remove(at.unwrap_or_else(|| panic!("{what}: a result of no call")));
            }
            Some(_) => assert!(due.is_empty(), "{what}: calls without results"),
            None => panic!("{what}: no role"),
        }
        let calls = message["tool_calls"].as_array();
        due.extend(calls.into_iter().flatten().map(|call| &call["id"]));
        assert!(message["role"] != "assistant" || !message["content"].is_null() || !due.is_empty());
    }
    assert!(due.is_empty(), "{what}: calls without results");
}

/// Every call is followed by one output, and a thought by the item it led to.
fn valid_responses(body: &Value, what: &str) {
    let (mut called, mut answered) = (HashSet::new(), HashSet::new());
    let items = list(&body["input"], what);
    for (n, item) in items.iter().enumerate() {
        match item["type"].as_str() {
            Some("function_call") => assert!(called.insert(item["call_id"].to_string()), "{what}"),
            Some("function_call_output") => {
                let id = item["call_id"].to_string();
                assert!(called.contains(&id) && answered.insert(id), "{what}: a stray output");
            }
            Some("reasoning") => {
                let next = items.get(n + 1).map(|next| &next["type"]);
                let led = ["message", "function_call", "web_search_call"];
                let follows = next.is_some_and(|kind| led.iter().any(|known| kind == known));
                assert!(follows, "{what}: a thought without a following item");
                assert!(item["encrypted_content"].is_string() && item["summary"].is_array());
            }
            Some("web_search_call") => assert!(item["action"].is_object(), "{what}"),
            Some("message") => assert!(!list(&item["content"], what).is_empty()),
            other => panic!("{what}: {other:?}"),
        }
    }
    assert_eq!(called, answered, "{what}");
}

/// Roles alternate, results directly follow their calls, thoughts are signed and precede what they
/// led to, and at most four blocks have a cache mark.
fn valid_messages(body: &Value, what: &str) {
    let mut before = "assistant";
    let mut due: HashSet<String> = HashSet::new();
    for message in list(&body["messages"], what) {
        let role = message["role"].as_str().unwrap();
        assert_ne!(role, before, "{what}: roles alternate");
        before = role;
        let content = list(&message["content"], what);
        assert!(!content.is_empty(), "{what}");
        let results = content.iter().take_while(|block| block["type"] == "tool_result");
        let results: HashSet<String> =
            results.map(|block| block["tool_use_id"].to_string()).collect();
        assert_eq!(std::mem::take(&mut due), results, "{what}: calls and results");
        for block in content {
            valid_block(block, what);
            if block["type"] == "tool_use" {
                assert!(due.insert(block["id"].to_string()), "{what}: an id twice");
            }
        }
    }
    assert_eq!(before, "user", "{what}");
    assert!(body.to_string().matches("cache_control").count() <= 4, "{what}");
    let limit = body["max_tokens"].as_u64().unwrap();
    let budget = body["thinking"]["budget_tokens"].as_u64();
    assert!(budget.is_none_or(|budget| (1024..limit).contains(&budget)), "{what}");
}

fn valid_block(block: &Value, what: &str) {
    match block["type"].as_str() {
        Some("text") => assert!(!block["text"].as_str().unwrap().trim().is_empty(), "{what}"),
        Some("thinking") => assert!(!block["signature"].as_str().unwrap().is_empty(), "{what}"),
        Some("tool_use") => assert!(block["input"].is_object(), "{what}"),
        Some("redacted_thinking" | "tool_result" | "image") => {}
        Some("server_tool_use") => assert!(block["input"].is_object(), "{what}"),
        Some("web_search_tool_result") => assert!(block["tool_use_id"].is_string(), "{what}"),
        other => panic!("{what}: {other:?}"),
    }
}

/// Every part has one kind, and every call is followed by one response.
fn valid_contents(body: &Value, what: &str) {
    let mut due = 0;
    for content in list(&body["contents"], what) {
        let parts = list(&content["parts"], what);
        assert!(!parts.is_empty(), "{what}");
        let count = |key: &str| parts.iter().filter(|part| part.get(key).is_some()).count();
        assert_eq!(count("functionResponse"), due, "{what}: calls and responses");
        due = count("functionCall");
        for part in parts {
            let kinds = ["text", "inlineData", "functionCall", "functionResponse"];
            let known = kinds.iter().filter(|kind| part.get(**kind).is_some()).count();
            assert_eq!(known, 1, "{what}: {part}");
            assert!(part["functionCall"].is_null() || part["functionCall"]["args"].is_object());
        }
    }
    assert_eq!(due, 0, "{what}");
}
