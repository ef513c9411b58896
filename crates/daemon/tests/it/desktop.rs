//! A client of the desktop-assistant protocol.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::client::Client;

/// Nothing in these tests takes this long, unless it is broken.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub(crate) struct Desktop {
    pub(crate) client: Client,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

impl Desktop {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The session of a name.
    pub(crate) async fn session(&self, name: &str) -> String {
        self.open(json!({ "jarvis_session_id": name })).await
    }

    pub(crate) async fn open(&self, body: Value) -> String {
        let (status, body) = self.client.post("/v1/sessions", body).await;
        assert_eq!(status, 200, "{body}");
        assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
        body["general_session_id"].as_str().unwrap().into()
    }

    /// Sends a message whose script is the model's answer, and reads the stream.
    pub(crate) async fn chat(&self, session: &str, script: Value) -> Frames {
        self.say(session, &scripted(&script), &[]).await
    }

    pub(crate) async fn say(
        &self,
        session: &str,
        text: &str,
        headers: &[(&'static str, &str)],
    ) -> Frames {
        let response = self.try_say(session, text, true, headers).await;
        Frames::of(response)
    }

    pub(crate) async fn try_say(
        &self,
        session: &str,
        text: &str,
        stream: bool,
        headers: &[(&'static str, &str)],
    ) -> Response {
        let body = message(session, text, stream);
        // No timeout: a stream lasts as long as it lasts.
        let mut request = self.client.unhurried(Method::POST, "/v1/chat").body(body.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap()
    }

    /// Sends a message and waits for the whole answer.
    pub(crate) async fn ask(&self, session: &str, text: &str) -> (u16, Value) {
        self.client.post("/v1/chat", message(session, text, false)).await
    }

    /// Follows a session, from now on or from a place.
    pub(crate) async fn follow(&self, session: &str, place: Option<&str>) -> Frames {
        let path = format!("/v1/stream?general_session_id={session}");
        let mut request = self.client.unhurried(Method::GET, &path);
        if let Some(place) = place {
            request = request.header("last-event-id", place);
        }
        Frames::of(request.send().await.unwrap())
    }

    pub(crate) async fn result(&self, session: &str, result: Value) -> (u16, Value) {
        let body = json!({ "general_session_id": session, "tool_result": result });
        self.client.post("/v1/tools/result", body).await
    }

    /// What came of a call, which must be taken.
    pub(crate) async fn done(&self, session: &str, call: &Frame, result: &str) {
        let result = json!({ "id": call.data["id"], "ok": true, "result": result, "error": null });
        let taken = self.result(session, result).await;
        assert_eq!(taken, (200, json!({ "accepted": true })));
    }
}

pub(crate) fn message(session: &str, text: &str, stream: bool) -> Value {
    let parts = json!([{ "type": "text", "text": text }]);
    json!({
        "general_session_id": session,
        "mode": "general",
        "message": { "parts": parts },
        "stream": stream,
    })
}

pub(crate) fn scripted(script: &Value) -> String {
    format!("go {{{{script: {script}}}}}")
}

/// A call that the model asks for.
pub(crate) fn open_app(app: &str) -> Value {
    json!({ "name": "open_app", "args": { "app_id": app } })
}

/// An open event stream.
pub(crate) struct Frames {
    response: Response,
    buffer: String,
}

impl Frames {
    pub(crate) fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, buffer: String::new() }
    }

    /// The next event; nothing if the stream is over or broken.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        let next = tokio::time::timeout(ANSWER_TIMEOUT, self.read());
        next.await.expect("nothing happened for too long")
    }

    /// The next event that is one of these.
    pub(crate) async fn next_of(&mut self, event: &str) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("it ended before {event}"));
            if frame.event == event {
                return frame;
            }
        }
    }

    /// Everything up to the end of the stream.
    pub(crate) async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }

    /// Everything up to the end of a turn.
    pub(crate) async fn turn(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await.expect("the turn ends before the stream does");
            let over = frame.event == "assistant.final";
            frames.push(frame);
            if over {
                return frames;
            }
        }
    }

    async fn read(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let frame: String = self.buffer.drain(..end + 2).collect();
                match parse(&frame) {
                    Some(frame) => return Some(frame),
                    None => continue,
                }
            }
            let bytes = self.response.chunk().await.ok()??;
            self.buffer.push_str(std::str::from_utf8(&bytes).expect("whole characters here"));
        }
    }
}

fn parse(frame: &str) -> Option<Frame> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ")?).unwrap();
    let (id, event) = (field("id: ").expect("an id"), field("event: ").expect("a type"));
    Some(Frame { id: id.into(), event: event.into(), data })
}

/// All text of an answer.
pub(crate) fn text(frames: &[Frame]) -> String {
    let deltas = frames.iter().filter(|frame| frame.event == "assistant.delta");
    deltas.filter_map(|frame| frame.data["text"].as_str()).collect()
}

/// The types of some events, without repeats in a row.
pub(crate) fn events(frames: &[Frame]) -> Vec<&str> {
    let mut events: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    events.dedup();
    events
}
