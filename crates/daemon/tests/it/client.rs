//! A client of the harness protocol.

use std::path::Path;
use std::sync::Once;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

/// Longer than anything in these tests takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone)]
pub(crate) struct Client {
    base: String,
    http: reqwest::Client,
}

/// One event, with its `id:`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) json: Value,
}

impl Event {
    pub(crate) fn kind(&self) -> &str {
        self.json["type"].as_str().unwrap_or_default()
    }
}

impl Client {
    pub(crate) fn new(base: &str) -> Self {
        static TLS: Once = Once::new();
        TLS.call_once(|| {
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        Self { base: base.into(), http: reqwest::Client::new() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).timeout(ANSWER_TIMEOUT)
    }

    /// A request without a timeout.
    pub(crate) fn unhurried(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.request(Method::POST, path).body(body.to_string()).send().await.unwrap()).await
    }

    /// A session in this workspace.
    pub(crate) async fn create(&self, workspace: &Path) -> String {
        let (status, body) =
            self.post("/v1/sessions", json!({ "workspace_path": workspace })).await;
        assert_eq!(status, 200, "{body}");
        body["session_id"].as_str().unwrap().into()
    }

    /// Sends a message whose script is the model's answer; returns the turn.
    pub(crate) async fn say(&self, session: &str, script: Value) -> String {
        let (status, body) = self.try_say(session, script).await;
        assert_eq!(status, 200, "{body}");
        body["turn_id"].as_str().unwrap().into()
    }

    pub(crate) async fn try_say(&self, session: &str, script: Value) -> (u16, Value) {
        let text = format!("go {{{{script: {script}}}}}");
        let part = json!({ "type": "text", "text": text });
        let body = json!({ "role": "user", "parts": [part], "auto_run": true });
        self.post(&format!("/v1/sessions/{session}/messages"), body).await
    }

    pub(crate) async fn session(&self, session: &str) -> Value {
        let (status, body) = self.get(&format!("/v1/sessions/{session}")).await;
        assert_eq!(status, 200, "{body}");
        body
    }

    /// All events so far.
    pub(crate) async fn history(&self, session: &str) -> Vec<Value> {
        let (status, body) = self.get(&format!("/v1/sessions/{session}/events?format=json")).await;
        assert_eq!(status, 200, "{body}");
        body.as_array().unwrap().clone()
    }

    pub(crate) async fn approve(&self, session: &str, call: &str, action: &str) -> (u16, Value) {
        let body = json!({ "tool_call_id": call, "action": action });
        self.post(&format!("/v1/sessions/{session}/approve"), body).await
    }

    /// Follows a session from a position.
    pub(crate) async fn follow(&self, session: &str, after: &str) -> Events {
        let path = format!("/v1/sessions/{session}/events?after={after}");
        let url = format!("{}{path}", self.base);
        let response = self.http.get(url).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events::of(response)
    }

    /// Follows a session until an event matches; returns all events up to it.
    pub(crate) async fn until(&self, session: &str, done: impl Fn(&Event) -> bool) -> Vec<Event> {
        self.follow(session, "0").await.until(done).await
    }

    /// Follows a session until its last requested turn has ended.
    pub(crate) async fn until_over(&self, session: &str) -> Vec<Event> {
        let asked = self.session(session).await;
        let turn = asked["turns"].as_array().unwrap().last().expect("a turn")["id"].clone();
        assert!(turn.is_string(), "{asked}");
        self.until(session, |event| over(event) && event.json["turn_id"] == turn).await
    }
}

/// True if an event ends a turn.
pub(crate) fn over(event: &Event) -> bool {
    ends_turn(event.kind())
}

/// True if an event of this type ends a turn.
pub(crate) fn ends_turn(kind: &str) -> bool {
    matches!(kind, "turn_completed" | "turn_failed" | "session_canceled")
}

/// An open event stream.
pub(crate) struct Events {
    response: Response,
    buffer: String,
}

impl Events {
    pub(crate) fn of(response: Response) -> Self {
        Self { response, buffer: String::new() }
    }

    /// The next event; `None` if the stream has ended or failed.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let next = tokio::time::timeout(ANSWER_TIMEOUT, self.read());
        next.await.expect("nothing happened for too long")
    }

    /// Like `next`, without a timeout.
    pub(crate) async fn read(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.find("\n\n") {
                let frame: String = self.buffer.drain(..end + 2).collect();
                match parse(&frame) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let bytes = self.response.chunk().await.ok()??;
            self.buffer
                .push_str(std::str::from_utf8(&bytes).expect("this test has no split characters"));
        }
    }

    pub(crate) async fn until(mut self, done: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let event =
                self.next().await.unwrap_or_else(|| panic!("the stream ended after {events:#?}"));
            events.push(event);
            if done(&events[events.len() - 1]) {
                return events;
            }
        }
    }
}

fn parse(frame: &str) -> Option<Event> {
    let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
    let json = serde_json::from_str(field("data: ")?).unwrap();
    assert_eq!(field("event: "), Some("message"));
    Some(Event { id: field("id: ").expect("every event has an id").into(), json })
}

async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

/// The types of events, without consecutive repeats.
pub(crate) fn kinds(events: &[Event]) -> Vec<String> {
    let mut kinds: Vec<String> = events.iter().map(|event| event.kind().to_owned()).collect();
    kinds.dedup();
    kinds
}

/// All text of an answer.
pub(crate) fn text(events: &[Event]) -> String {
    let deltas = events.iter().filter(|event| event.json["data"]["kind"] == "text");
    deltas.filter_map(|event| event.json["data"]["delta"].as_str()).collect()
}
