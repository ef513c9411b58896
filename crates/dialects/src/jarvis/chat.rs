//! Submits a message, unless it was submitted before, and waits for the answer.

use std::sync::Arc;

use axum::response::Response;
use quintet_kernel::command::Command;
use quintet_kernel::event::Seq;
use quintet_kernel::message::Part;
use quintet_kernel::port::{Error, Follower, Receipt};
use quintet_kernel::session::Turn;
use quintet_kernel::{Cursor, Refusal, State, TurnId};
use serde_json::{Value, json};

use super::decode::Chat;
use super::encode::{End, Link};
use super::reply::Reply;
use super::serve::AppState;

/// The turn that answers a message.
#[derive(Debug)]
struct AnsweringTurn {
    turn: TurnId,
    attempt: u32,
    /// The event that added the message.
    begins: Seq,
    /// True if the turn existed before this request.
    joined: bool,
}

/// The headers of a message.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// The idempotency key.
    pub(super) key: Option<String>,
    /// The last event that a client that reconnects has seen.
    pub(super) position: Option<Cursor>,
}

/// Answers a message with a stream.
pub(super) async fn stream(
    app: &AppState,
    chat: &Chat,
    envelope: &Envelope,
) -> Result<Response, Reply> {
    let priority = app.claim_priorities.add(&chat.session);
    let answering = submit(app, chat, envelope.key.as_ref()).await?;
    let follow = follow(app, chat, &answering).await?;
    let (read, head) = (answering.begins - 1, follow.head());
    let turn = (answering.turn, answering.attempt);
    let link = match envelope.position {
        Some(seen) if answering.joined && seen.seq > head => {
            return Err(Reply::gone(&seen.to_string()));
        }
        Some(seen) if answering.joined && seen.seq > read => Link::of_turn(turn, seen, read, head),
        _ if answering.joined => Link::of_turn(turn, Cursor::after(read), read, head),
        _ => Link::of_turn(turn, Cursor::after(read), read, 0),
    };
    app.stream_of(&chat.session, link, Some(priority)).response(follow).await
}

/// Answers a message with its final text.
pub(super) async fn final_answer(
    app: &AppState,
    chat: &Chat,
    envelope: &Envelope,
) -> Result<Value, Reply> {
    let answering = submit(app, chat, envelope.key.as_ref()).await?;
    let mut follow = follow(app, chat, &answering).await?;
    let read = answering.begins - 1;
    let mut link =
        Link::of_turn((answering.turn, answering.attempt), Cursor::after(read), read, read);
    loop {
        let items = follow.next().await?.ok_or(Error::Closing)?;
        for item in &items {
            link.encode(item);
            match link.end() {
                None => {}
                Some(End::Final(text)) => {
                    let part = json!({ "type": "text", "text": text });
                    return Ok(json!({ "assistant": { "parts": [part] } }));
                }
                Some(End::Error(code, message)) => return Err(failed(code, message)),
            }
        }
    }
}

fn failed(code: &str, message: &str) -> Reply {
    let status = if code == "CANCELLED" { 409 } else { 502 };
    Reply::new(status, code, message)
}

async fn follow(
    app: &AppState,
    chat: &Chat,
    answering: &AnsweringTurn,
) -> Result<Box<dyn Follower>, Reply> {
    let from = Cursor::after(answering.begins - 1);
    Ok(app.services.sessions.follow(&chat.session, from).await?)
}

/// Submits a message, unless the same message, or one with the same key, is being answered or was
/// answered before.
async fn submit(app: &AppState, chat: &Chat, key: Option<&String>) -> Result<AnsweringTurn, Reply> {
    let sessions = &app.services.sessions;
    let before = sessions.view(&chat.session).await?;
    if let Some(answering) = same_message(&before, &chat.parts, key) {
        return join(app, before, answering).await;
    }
    let toolset = app.with_pending_tools(&before);
    // While a reference to the state exists, the session has to copy it to continue.
    drop(before);
    match sessions.submit(&chat.session, chat.command(key.cloned(), toolset)).await {
        Ok(receipt) => match added(&receipt) {
            Some(answering) => {
                app.clear_pending_tools(&chat.session);
                Ok(answering)
            }
            None => {
                let state = sessions.view(&chat.session).await?;
                let known = key.and_then(|key| state.turn_by_key(key)).map(known);
                join(app, state, known.ok_or_else(Reply::busy)?).await
            }
        },
        // The same message may have been sent twice at the same time.
        Err(Error::Refused(Refusal::Busy(_))) => {
            let state = sessions.view(&chat.session).await?;
            same_message(&state, &chat.parts, key).ok_or_else(Reply::busy)
        }
        Err(error) => Err(error.into()),
    }
}

/// Joins an existing turn; a turn that waits after a crash is continued.
async fn join(
    app: &AppState,
    state: Arc<State>,
    answering: AnsweringTurn,
) -> Result<AnsweringTurn, Reply> {
    let held = state.open.as_ref().is_some_and(|open| open.id == answering.turn && open.held);
    let session = state.id.clone();
    drop(state);
    if held {
        let start = Command::StartTurn { turn: answering.turn.clone() };
        app.services.sessions.submit(&session, start).await?;
    }
    Ok(answering)
}

/// The open turn, if this message started it. A message with a key matches only the same key.
fn same_message(state: &State, parts: &[Part], key: Option<&String>) -> Option<AnsweringTurn> {
    let open = state.open.as_ref()?;
    let turn = state.turn(&open.id)?;
    let message = state.messages.iter().find(|message| message.id == turn.message)?;
    let same = key.is_none_or(|key| turn.options.key.as_ref() == Some(key));
    (same && message.parts == parts).then(|| known(turn))
}

fn known(turn: &Turn) -> AnsweringTurn {
    let (turn, attempt, begins) = (turn.id.clone(), turn.attempts, turn.begins);
    AnsweringTurn { turn, attempt, begins, joined: true }
}

/// The turn that a command added; `None` if it existed before.
fn added(receipt: &Receipt) -> Option<AnsweringTurn> {
    let added = receipt.message()?;
    Some(AnsweringTurn { turn: added.turn.clone(), attempt: 1, begins: added.seq, joined: false })
}
