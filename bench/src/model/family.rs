//! The same answer in the formats of other families of model APIs, to compare the cost of parsing
//! them.

use crate::script;

/// A family, by its path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Family {
    Responses,
    Messages,
    Gemini,
}

impl Family {
    /// The family of a path; paths arrive in lower case.
    pub(super) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/responses" => Some(Self::Responses),
            "/v1/messages" => Some(Self::Messages),
            _ if path.contains(":streamgeneratecontent") => Some(Self::Gemini),
            _ => None,
        }
    }

    pub(super) fn begin(self) -> Vec<String> {
        match self {
            Self::Responses => vec![event(
                "response.created",
                r#""sequence_number":0,"response":{"id":"resp_bench","status":"in_progress"}"#,
            )],
            Self::Messages => vec![
                event(
                    "message_start",
                    r#""message":{"id":"msg_bench","usage":{"input_tokens":10,"output_tokens":1}}"#,
                ),
                event(
                    "content_block_start",
                    r#""index":0,"content_block":{"type":"text","text":""}"#,
                ),
            ],
            Self::Gemini => Vec::new(),
        }
    }

    pub(super) fn delta(self, number: usize) -> String {
        let text = script::delta(number);
        let text = str::from_utf8(&text).unwrap_or_default();
        match self {
            Self::Responses => event(
                "response.output_text.delta",
                &format!(
                    r#""sequence_number":{number},"item_id":"msg_bench","output_index":0,"content_index":0,"delta":"{text}","logprobs":[],"obfuscation":"aB3dE5gH""#
                ),
            ),
            Self::Messages => event(
                "content_block_delta",
                &format!(r#""index":0,"delta":{{"type":"text_delta","text":"{text}"}}"#),
            ),
            Self::Gemini => format!(
                "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}],\"role\":\"model\"}},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":10,\"candidatesTokenCount\":{number},\"totalTokenCount\":{number}}},\"modelVersion\":\"fake\"}}\n\n"
            ),
        }
    }

    pub(super) fn end(self, deltas: usize) -> Vec<String> {
        match self {
            Self::Responses => vec![event(
                "response.completed",
                &format!(
                    r#""response":{{"status":"completed","usage":{{"input_tokens":10,"output_tokens":{deltas}}}}}"#
                ),
            )],
            Self::Messages => vec![
                event("content_block_stop", r#""index":0"#),
                event(
                    "message_delta",
                    &format!(
                        r#""delta":{{"stop_reason":"end_turn"}},"usage":{{"output_tokens":{deltas}}}"#
                    ),
                ),
                "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n".into(),
            ],
            Self::Gemini => vec![format!(
                "data: {{\"candidates\":[{{\"finishReason\":\"STOP\",\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":10,\"candidatesTokenCount\":{deltas}}}}}\n\n"
            )],
        }
    }
}

fn event(kind: &str, rest: &str) -> String {
    format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{rest}}}\n\n")
}
