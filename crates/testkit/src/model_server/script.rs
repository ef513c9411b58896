//! Finds the scripted answer in the prompt.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

/// One step of a script: an answer.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) deltas: Vec<String>,
    pub(super) repeat: usize,
    pub(super) thought: String,
    pub(super) tools: Vec<Value>,
    pub(super) delay: Duration,
    pub(super) gap: Duration,
    pub(super) hold_until: Option<PathBuf>,
    pub(super) status: Option<u16>,
    pub(super) message: String,
    pub(super) code: Option<String>,
    pub(super) fail_times: Option<u64>,
    pub(super) retry_after: Option<String>,
    pub(super) hang: bool,
    pub(super) cut: bool,
    pub(super) garbage: bool,
    pub(super) plain: bool,
    pub(super) usage: Option<Vec<u64>>,
}

impl Step {
    fn read(step: &Value) -> Self {
        let text = |key: &str| step[key].as_str().map(str::to_owned);
        let flag = |key: &str| step[key].as_bool().unwrap_or_default();
        let wait = |key: &str| Duration::from_millis(step[key].as_u64().unwrap_or_default());
        Self {
            deltas: deltas(step),
            repeat: step["repeat"].as_u64().map_or(1, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            thought: text("thought").unwrap_or_default(),
            tools: step["tools"].as_array().cloned().unwrap_or_default(),
            delay: wait("delay_ms"),
            gap: wait("gap_ms"),
            hold_until: text("hold_until").map(PathBuf::from),
            status: step["status"].as_u64().and_then(|n| u16::try_from(n).ok()),
            message: text("message").unwrap_or_else(|| "scripted failure".into()),
            code: text("code"),
            fail_times: step["fail_times"].as_u64(),
            retry_after: header(&step["retry_after"]),
            hang: flag("hang"),
            cut: flag("cut"),
            garbage: flag("garbage"),
            plain: flag("plain"),
            usage: step["usage"].as_array().map(|n| n.iter().filter_map(Value::as_u64).collect()),
        }
    }
}

fn deltas(step: &Value) -> Vec<String> {
    match step["deltas"].as_array() {
        Some(deltas) => deltas.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => step["text"].as_str().map(str::to_owned).into_iter().collect(),
    }
}

fn header(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(seconds) => Some(seconds.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The step that answers this call: the number of assistant turns after the script is the number of
/// completed steps.
pub(super) fn step_for(body: &Value) -> Step {
    let history = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let scripted = history.iter().enumerate().rev().find_map(|(n, message)| {
        let steps = (message["role"] == "user").then(|| script_in(&text_of(message)))??;
        Some((n, steps))
    });
    let step = match scripted {
        Some((n, steps)) => {
            let done = turns(&history[n + 1..]);
            steps.as_array().and_then(|steps| steps.get(done)).cloned()
        }
        None => Some(json!({"text": format!("echo: {}", last_user_text(history))})),
    };
    Step::read(&step.unwrap_or_else(|| json!({"text": "done"})))
}

/// Consecutive assistant messages are one turn.
fn turns(history: &[Value]) -> usize {
    let mut inside = false;
    let mut count = 0;
    for message in history {
        let mine = message["role"] == "assistant";
        count += usize::from(mine && !inside);
        inside = mine;
    }
    count
}

fn script_in(text: &str) -> Option<Value> {
    let (_, script) = text.rsplit_once("{{script:")?;
    let first = serde_json::Deserializer::from_str(script).into_iter().next();
    Some(match first {
        Some(Ok(steps)) => steps,
        Some(Err(_)) | None => {
            json!([{"status": 400, "message": "the script in the user message is not JSON"}])
        }
    })
}

fn last_user_text(history: &[Value]) -> String {
    let users = history.iter().rev().filter(|message| message["role"] == "user");
    users.map(text_of).find(|text| !text.is_empty()).unwrap_or_default()
}

fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
