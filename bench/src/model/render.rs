//! The model's answers as bytes: every delta is its own HTTP chunk, like the output of a server
//! that flushes after each token.

use crate::script::{self, Tool};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENT: &str = r#"data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[{"index":0,"delta":"#;
const BEFORE: &str = r#"{"content":""#;
const AFTER: &str = "\"},\"finish_reason\":null}]}\n\n";

/// The head and the event with the role.
pub(super) fn begin() -> Vec<u8> {
    let mut out = HEAD.as_bytes().to_vec();
    let role = r#"{"role":"assistant","content":""},"finish_reason":null}]}"#;
    chunk(&mut out, &format!("{EVENT}{role}\n\n"));
    out
}

/// One delta. All have the same length, so only the number is formatted here.
pub(super) fn delta(out: &mut Vec<u8>, number: usize) {
    const LENGTH: usize = EVENT.len() + BEFORE.len() + script::DELTA_BYTES + AFTER.len();
    const { assert!(LENGTH == 0xaf) }
    out.extend_from_slice(b"af\r\n");
    out.extend_from_slice(EVENT.as_bytes());
    out.extend_from_slice(BEFORE.as_bytes());
    out.extend_from_slice(&script::delta(number));
    out.extend_from_slice(AFTER.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Events of another family, each as its own HTTP chunk.
pub(super) fn events(out: &mut Vec<u8>, events: &[String]) {
    for event in events {
        chunk(out, event);
    }
}

/// The head alone.
pub(super) fn head() -> Vec<u8> {
    HEAD.as_bytes().to_vec()
}

/// The end of a stream.
pub(super) fn close(out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n\r\n");
}

/// The finish reason, the usage, and the end. Four bytes of the request count as a token.
pub(super) fn end(out: &mut Vec<u8>, request: usize, deltas: usize) {
    chunk(out, &format!("{EVENT}{{}},\"finish_reason\":\"stop\"}}]}}\n\n"));
    let prompt = request / 4;
    let usage = format!(
        r#"{{"prompt_tokens":{prompt},"completion_tokens":{deltas},"total_tokens":{}}}"#,
        prompt + deltas
    );
    chunk(
        out,
        &format!(
            "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"choices\":[],\"usage\":{usage}}}\n\n"
        ),
    );
    chunk(out, "data: [DONE]\n\n");
    out.extend_from_slice(b"0\r\n\r\n");
}

/// A tool call, and the end.
pub(super) fn call(out: &mut Vec<u8>, id: u64, tool: Tool) {
    let (name, arguments) = match tool {
        Tool::Shell => ("shell", r#"{\"command\":\"true\"}"#),
        Tool::ReadFile => ("read_file", r#"{\"path\":\"note.txt\"}"#),
    };
    let asked = format!(
        r#"{{"tool_calls":[{{"index":0,"id":"call_{id}","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}]}},"finish_reason":null}}]}}"#
    );
    chunk(out, &format!("{EVENT}{asked}\n\n"));
    chunk(out, &format!("{EVENT}{{}},\"finish_reason\":\"tool_calls\"}}]}}\n\n"));
    chunk(out, "data: [DONE]\n\n");
    close(out);
}

/// A JSON response.
pub(super) fn json(body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

fn chunk(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes());
}
