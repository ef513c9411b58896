//! Creates, continues, retrieves, cancels and deletes responses of the agent.
//!
//! A response is a part of a session's journal. Its id contains its first event, and the request is stored
//! with that event; everything else is read from the journal.

use axum::response::Response;
use quintet_kernel::command::Command;
use quintet_kernel::port::Error;
use quintet_kernel::session::Turn;
use quintet_kernel::{Item, SessionId, State};
use serde_json::{Map, Value, json};

use super::agent::Answer;
use super::decode::Message;
use super::decode::responses::ResponseRequest;
use super::encode::response::{self, Response as Encoder, ResponseEvent};
use super::encode::turn::TurnReader;
use super::encode::{KEEP_ALIVE, frame};
use super::reply::Reply;
use super::response_id::{ClientCallId, ResponseId};
use super::serve::{AppState, CancelOnDrop, KEEP_ALIVE_INTERVAL, event_stream, ok};
use super::start::{AgentRun, NewRun};
use super::stored_response::{BACKGROUND, DELETED, INPUT, RESPONSE, STORE, StoredResponse};
use crate::transport::query::parameter;
use crate::transport::sse::{self, Encode};

/// `POST /v1/responses`.
pub(super) async fn create(app: &AppState, request: ResponseRequest) -> Result<Response, Reply> {
    let ResponseRequest { generation, previous, store, background, echo, input } = request;
    let continued = match &previous {
        Some(id) => Some(continued(app, id, &generation.messages).await?),
        None => None,
    };
    let data = Map::from_iter([
        (RESPONSE.to_owned(), Value::Object(echo)),
        (INPUT.to_owned(), input.into()),
        (BACKGROUND.to_owned(), background.into()),
        (STORE.to_owned(), store.into()),
    ]);
    let is_stream = generation.stream;
    let run = NewRun { generation, continued, data, is_background: background };
    let started = run.start(app).await?;
    let id = ResponseId::from(&started.run);
    let stored = StoredResponse::read(app, &id).await.map_err(Reply::after_start)?;
    let mut encoder = stored.encoder();
    if background && !is_stream {
        return Ok(ok(&encoder.object()));
    }
    let mut answer = Answer::follow(app, started).await.map_err(Reply::after_start)?;
    if is_stream {
        let mut out = Vec::new();
        encoder.begin().iter().for_each(|event| event.write(&mut out));
        let Answer { follow, reader, cancel } = answer;
        let stream = ResponseStream { reader, encoder, cancel: Some(cancel), after: None };
        return Ok(event_stream(sse::body(follow, stream, out, KEEP_ALIVE_INTERVAL)));
    }
    loop {
        for progress in answer.next().await? {
            encoder.take(&progress);
        }
        if let Some(end) = encoder.end() {
            return match response::error_reply(end) {
                Some(reply) => Err(reply),
                None => Ok(ok(&encoder.object())),
            };
        }
    }
}

/// `GET /v1/responses/{id}`: the current response, or its events after a number.
pub(super) async fn retrieve(app: &AppState, id: &str, query: &str) -> Result<Response, Reply> {
    let after = match parameter(query, "starting_after") {
        None => None,
        Some(text) => {
            let error =
                || Reply::invalid_value("starting_after", "starting_after must be a number");
            Some(text.parse::<u64>().map_err(|_| error())?)
        }
    };
    let is_stream = match parameter(query, "stream").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Reply::invalid_value("stream", "stream must be true or false")),
    };
    let stored = StoredResponse::find(app, id).await?;
    if !is_stream {
        return Ok(ok(&stored.now(app).await?.encoder.object()));
    }
    let (follow, reader) = (stored.follow(app).await?, stored.reader());
    let mut stream = ResponseStream { reader, encoder: stored.encoder(), cancel: None, after };
    // Something must be sent at once, or some clients do not get the headers until the first event.
    let mut out = KEEP_ALIVE.to_vec();
    let first = stream.encoder.begin();
    stream.write(&first, &mut out);
    Ok(event_stream(sse::body(follow, stream, out, KEEP_ALIVE_INTERVAL)))
}

/// `POST /v1/responses/{id}/cancel`. A response that has ended does not change.
pub(super) async fn cancel(app: &AppState, id: &str) -> Result<Response, Reply> {
    let stored = StoredResponse::find(app, id).await?;
    let mut current = stored.now(app).await?;
    if !current.encoder.is_over() {
        let reason = Some("cancelled by the client".to_owned());
        let cancel_turn = Command::CancelTurn { turn: stored.run.turn.clone(), reason };
        app.services.sessions.submit(&stored.run.session, cancel_turn).await?;
        current.run_to_end().await?;
    }
    Ok(ok(&current.encoder.object()))
}

/// `DELETE /v1/responses/{id}`. A session without other turns is deleted, too.
pub(super) async fn delete(app: &AppState, id: &str) -> Result<Response, Reply> {
    let stored = StoredResponse::find(app, id).await?;
    let AgentRun { session, turn, turn_begins, begins } = &stored.run;
    let state = app.services.sessions.view(session).await?;
    let is_only = begins == turn_begins && own_turns(&state).all(|other| other.id == *turn);
    let deleted = state.labels.get(DELETED).map(|list| format!("{list},{begins}"));
    drop(state);
    if is_only {
        app.services.sessions.remove(session).await?;
    } else {
        let value = Some(deleted.unwrap_or_else(|| begins.to_string()));
        let label = Command::SetLabel { key: DELETED.into(), value };
        app.services.sessions.submit(session, label).await?;
    }
    Ok(ok(&json!({ "id": id, "object": "response", "deleted": true })))
}

/// `GET /v1/responses/{id}/input_items`, newest first by default.
pub(super) async fn input_items(
    app: &AppState,
    id: &str,
    order: Option<&str>,
) -> Result<Response, Reply> {
    let stored = StoredResponse::find(app, id).await?;
    let mut items = stored.data[INPUT].as_array().cloned().unwrap_or_default();
    match order {
        None | Some("desc") => items.reverse(),
        Some("asc") => {}
        Some(_) => return Err(Reply::invalid_value("order", "order must be asc or desc")),
    }
    let at = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
    let (first, last) = (at(items.first()), at(items.last()));
    Ok(ok(&json!({
        "object": "list",
        "data": items,
        "first_id": first,
        "last_id": last,
        "has_more": false,
    })))
}

/// The session in which a response is continued: its own, or a fork if another response follows it there.
/// Fails if the response waits for results that the request does not contain.
async fn continued(app: &AppState, id: &str, messages: &[Message]) -> Result<SessionId, Reply> {
    let error = |message: String| {
        Reply::invalid(message).code("invalid_value").param("previous_response_id")
    };
    let stored = StoredResponse::find(app, id).await.map_err(|reply| match reply.status {
        404 => error(format!("Previous response with id '{id}' not found."))
            .code("previous_response_not_found"),
        _ => reply,
    })?;
    let current = stored.now(app).await?;
    let Some(ended) = current.reader.ended() else {
        return Err(error(format!("The response '{id}' is still in progress.")));
    };
    let AgentRun { session, turn, .. } = &stored.run;
    let state = app.services.sessions.view(session).await?;
    let waiting = state.open.as_ref().filter(|open| open.id == *turn && open.waits_for_client());
    let waiting = waiting.and_then(|open| open.calls().iter().find(|call| call.with_client()));
    let given = messages.iter().find_map(|message| match message {
        Message::Result { call, .. } => Some(call),
        Message::System(_) | Message::User(_) | Message::Assistant { .. } => None,
    });
    match (waiting, given) {
        (Some(call), None) => {
            let call = ClientCallId { session: session.clone(), call: call.id().clone() };
            let why = format!("No tool output found for function call {call}.");
            return Err(Reply::invalid(why).code("invalid_value").param("input"));
        }
        (None, Some(call)) => {
            let why = format!("No tool call found for function call output with call_id {call}.");
            return Err(Reply::invalid(why).code("invalid_value").param("input"));
        }
        (Some(_), Some(_)) if !matches!(messages.last(), Some(Message::Result { .. })) => {
            let why = "send the outputs of function calls without a message; it can follow in the next request";
            return Err(Reply::unsupported("input", why));
        }
        (Some(_), Some(_)) => return Ok(session.clone()),
        (None, None) => {}
    }
    let is_last =
        state.open.is_none() && own_turns(&state).next_back().is_some_and(|it| it.id == *turn);
    drop(state);
    if is_last {
        return Ok(session.clone());
    }
    Ok(app.services.sessions.fork(session, Some(ended)).await?.session)
}

/// The turns of a session without imported and replaced ones.
fn own_turns(state: &State) -> impl DoubleEndedIterator<Item = &Turn> {
    state.turns.iter().filter(|turn| !turn.options.recalled && !turn.superseded)
}

/// A stream of a response's events.
struct ResponseStream {
    reader: TurnReader,
    encoder: Encoder,
    /// Cancels the run when the client disconnects; `None` for a client that only reads.
    cancel: Option<CancelOnDrop>,
    /// The last event that the client has.
    after: Option<u64>,
}

impl ResponseStream {
    fn write(&self, events: &[ResponseEvent], out: &mut Vec<u8>) {
        let is_new = |event: &&ResponseEvent| self.after.is_none_or(|after| event.sequence > after);
        events.iter().filter(is_new).for_each(|event| event.write(out));
    }
}

impl Encode for ResponseStream {
    fn encode(&mut self, items: &[Item], out: &mut Vec<u8>) {
        for item in items {
            for progress in self.reader.take(item) {
                let events = self.encoder.take(&progress);
                self.write(&events, out);
            }
        }
        if self.reader.is_over() {
            self.cancel.iter_mut().for_each(CancelOnDrop::release);
            // The stream ends after the next write, and there may be nothing left to write.
            if out.is_empty() {
                out.extend_from_slice(KEEP_ALIVE);
            }
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(KEEP_ALIVE);
    }

    fn is_over(&self) -> bool {
        self.encoder.is_over()
    }

    // A stream without an end would look like a complete answer.
    fn closing(&mut self, out: &mut Vec<u8>) {
        self.broken(&Error::Closing, out);
    }

    fn broken(&mut self, error: &Error, out: &mut Vec<u8>) {
        let message = error.to_string();
        let error =
            json!({ "type": "error", "code": "server_error", "message": message, "param": null });
        frame(Some("error"), &error, out);
    }
}
