//! Formats runs and their events for a terminal.

use serde_json::Value;

/// Maximum shown length of a task, in characters.
const QUERY_WIDTH: usize = 60;
/// Maximum shown length of an event, in characters.
const DETAIL_WIDTH: usize = 160;

/// A run in one line.
pub(super) fn line(run: &Value) -> String {
    let text = |name: &str| plain(run[name].as_str().unwrap_or("-"), QUERY_WIDTH);
    let worker = plain(run["worker"]["worker_id"].as_str().unwrap_or("-"), QUERY_WIDTH);
    format!(
        "{}  {:<15}  {:<14}  {}  {worker}  {}",
        text("run_id"),
        text("status"),
        text("control_mode"),
        text("workspace_id"),
        text("query"),
    )
}

/// Formats the events of a run; text of the answer is joined.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    in_text: bool,
}

impl Timeline {
    /// Formats an event, including its line end.
    pub(super) fn event(&mut self, event: &Value) -> String {
        let kind = event["event_type"].as_str().unwrap_or_default();
        let text = &event["payload"]["payload"]["text"];
        if kind == "streaming-response"
            && let Some(text) = text.as_str()
        {
            self.in_text = true;
            return text.chars().map(|c| if c == '\n' { c } else { visible(c) }).collect();
        }
        let before = if std::mem::take(&mut self.in_text) { "\n" } else { "" };
        let (seq, at) = (&event["seq"], event["timestamp"].as_str().unwrap_or_default());
        let detail = detail(kind, &event["payload"]);
        format!("{before}[{seq}] {at} {} {detail}\n", plain(kind, QUERY_WIDTH)).replace(" \n", "\n")
    }
}

fn detail(kind: &str, payload: &Value) -> String {
    let inner = &payload["payload"];
    let shown = match kind {
        "tool-call" => format!("{} {}", word(&inner["tool_name"]), inner["parameters"]),
        "tool-output" => word(&inner["output"]),
        "streaming-complete"
        | "tool-schemas"
        | "system-prompt"
        | "user-message-full"
        | "assistant-message-full"
        | "query-accepted"
        | "token-count" => String::new(),
        "error" => word(&inner["message"]),
        _ => payload.to_string(),
    };
    plain(&shown, DETAIL_WIDTH)
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

/// The beginning of a text on one line, without control characters.
fn plain(text: &str, width: usize) -> String {
    let mut shown: String = text.chars().take(width).map(visible).collect();
    if text.chars().nth(width).is_some() {
        shown.push('…');
    }
    shown
}

fn visible(character: char) -> char {
    match character {
        '\n' | '\r' | '\t' => ' ',
        control if control.is_control() => '?',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_joined_and_other_events_have_their_own_lines() {
        let mut timeline = Timeline::default();
        let event = |seq: u64, kind: &str, payload: Value| json!({ "seq": seq, "timestamp": "T", "event_type": kind, "payload": payload });
        let text = |text: &str| json!({ "payload": { "text": text } });
        let call =
            json!({ "payload": { "tool_name": "shell", "parameters": { "command": "ls" } } });
        let shown: String = [
            event(1, "query-accepted", json!({})),
            event(2, "streaming-response", text("Hel\u{1b}")),
            event(3, "streaming-response", text("lo\n")),
            event(4, "tool-call", call),
            event(5, "streaming-complete", json!({})),
        ]
        .iter()
        .map(|event| timeline.event(event))
        .collect();
        let then = "[1] T query-accepted\nHel?lo\n\n[4] T tool-call shell {\"command\":\"ls\"}\n[5] T streaming-complete\n";
        assert_eq!(shown, then);
    }
}
