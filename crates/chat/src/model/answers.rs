//! Applies the daemon's answers to requests.

use serde_json::Value;

use super::{Model, Pane, Running};
use crate::wire::{Request, RpcError};

impl Model {
    pub(super) fn answer(
        &mut self,
        request: &Request,
        answer: Result<Value, RpcError>,
    ) -> Vec<Request> {
        match (request, answer) {
            (Request::Query { .. }, Ok(result)) => self.accepted(&result),
            (Request::Query { .. }, Err(fault)) => {
                self.transcript.add_error(fault.message);
                self.query_ended()
            }
            (Request::Load { received_bytes, .. }, Ok(result)) => {
                self.loaded(&result, received_bytes.is_some())
            }
            (Request::Load { session, .. }, Err(fault)) => {
                self.transcript.add_error(format!("session {session}: {}", fault.message));
                self.chat.session = None;
                self.chat.running = None;
                Vec::new()
            }
            (Request::List, Ok(result)) => {
                if let Pane::Sessions(sessions) = &mut self.pane {
                    sessions.fill(&result);
                }
                Vec::new()
            }
            (Request::Prompts, Ok(result)) => {
                self.take_prompts(&result);
                Vec::new()
            }
            // A daemon of an older version has none.
            (Request::Prompts, Err(_)) => Vec::new(),
            (Request::Delete { session }, Ok(_)) => {
                self.deleted(session);
                Vec::new()
            }
            (
                Request::Cancel { .. }
                | Request::Resume { .. }
                | Request::Approve { .. }
                | Request::Answer { .. }
                | Request::Context(_)
                | Request::Initialize(_),
                Ok(_),
            ) => Vec::new(),
            (_, Err(fault)) => {
                self.hint = Some(fault.message);
                Vec::new()
            }
        }
    }

    fn accepted(&mut self, result: &Value) -> Vec<Request> {
        let name = |field: &str| result[field].as_str().map(str::to_owned);
        self.chat.session = name("session_id").or(self.chat.session.take());
        let Some(running) = &mut self.chat.running else { return Vec::new() };
        running.query = name("query_id");
        if running.cancelling {
            // The user cancelled before the daemon accepted the query.
            self.cancel()
        } else {
            running.doing = "thinking".into();
            Vec::new()
        }
    }

    /// Shows a session that was opened. After a reconnect the session is already on the screen,
    /// unless its query ended meanwhile: then the end was missed, and the whole session is shown
    /// again.
    fn loaded(&mut self, result: &Value, reconnected: bool) -> Vec<Request> {
        let open = result["running_queries"].as_array().into_iter().flatten();
        let open: Vec<&str> = open.filter_map(|query| query["query_id"].as_str()).collect();
        self.chat.session = result["session_id"].as_str().map(str::to_owned);
        let mine = self.chat.running.as_ref().and_then(|running| running.query.as_deref());
        if reconnected && mine.is_some_and(|mine| open.contains(&mine)) {
            return Vec::new();
        }
        self.show(result, !open.is_empty());
        self.chat.running = open.first().map(|query| Running {
            query: Some((*query).to_owned()),
            doing: "answering".into(),
            ..Running::default()
        });
        match self.chat.running {
            Some(_) => Vec::new(),
            None => self.query_ended(),
        }
    }

    fn show(&mut self, result: &Value, running: bool) {
        self.transcript.clear();
        self.scroll = 0;
        let messages = result["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let by_person = |message: &Value| message["role"] == "user";
        // The running answer is replayed from its beginning.
        let last = messages.iter().rposition(by_person).map_or(messages.len(), |last| last + 1);
        let shown = if running { &messages[..last] } else { messages };
        if result["truncated"] == true {
            self.transcript.add_note("earlier messages are not shown");
        }
        for message in shown {
            let text = message["content"].as_str().unwrap_or_default().to_owned();
            match message["role"].as_str() {
                Some("user") => self.transcript.add_user_text(text),
                Some("assistant") => self.transcript.answered(text),
                _ => self.transcript.add_note(text),
            }
        }
        self.chat.tokens =
            result.pointer("/session/total_tokens").and_then(Value::as_u64).unwrap_or_default();
    }

    fn deleted(&mut self, session: &str) {
        if let Pane::Sessions(sessions) = &mut self.pane {
            sessions.remove(session);
        }
        if self.chat.session.as_deref() == Some(session) {
            self.chat.session = None;
            self.chat.running = None;
            self.chat.approvals.clear();
            self.transcript.clear();
        }
        self.hint = Some("session deleted".into());
    }
}
