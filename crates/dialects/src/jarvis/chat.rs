//! Sends a message, or finds that it was sent before, and waits for the answer.

use std::sync::Arc;

use axum::response::Response;
use quintet_kernel::command::Command;
use quintet_kernel::event::Seq;
use quintet_kernel::message::Part;
use quintet_kernel::port::{Error, Follow, Receipt};
use quintet_kernel::session::Turn;
use quintet_kernel::{Cursor, Refusal, State, TurnId};
use serde_json::{Value, json};

use super::decode::Chat;
use super::encode::{End, Link};
use super::reply::Reply;
use super::serve::Desk;

/// The turn that answers a message.
#[derive(Debug)]
struct Asked {
    turn: TurnId,
    attempt: u32,
    /// The event that brought it.
    begins: Seq,
    /// Whether it was there before.
    joined: bool,
}

/// How a message came.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    /// The client's name for it.
    pub(super) key: Option<String>,
    /// Where the client broke off, if it comes back.
    pub(super) position: Option<Cursor>,
}

/// Answers a message with a stream.
pub(super) async fn stream(
    desk: &Desk,
    chat: &Chat,
    envelope: &Envelope,
) -> Result<Response, Reply> {
    let asker = desk.askers.add(&chat.session);
    let asked = ask(desk, chat, envelope.key.as_ref()).await?;
    let follow = follow(desk, chat, &asked).await?;
    let (read, head) = (asked.begins - 1, follow.head());
    let turn = (asked.turn, asked.attempt);
    let link = match envelope.position {
        Some(seen) if asked.joined && seen.seq > head => {
            return Err(Reply::gone(&seen.to_string()));
        }
        Some(seen) if asked.joined && seen.seq > read => Link::of_turn(turn, seen, read, head),
        _ if asked.joined => Link::of_turn(turn, Cursor::after(read), read, head),
        _ => Link::of_turn(turn, Cursor::after(read), read, 0),
    };
    desk.stream_of(&chat.session, link, Some(asker)).response(follow).await
}

/// Answers a message with its final text.
pub(super) async fn whole(desk: &Desk, chat: &Chat, envelope: &Envelope) -> Result<Value, Reply> {
    let asked = ask(desk, chat, envelope.key.as_ref()).await?;
    let mut follow = follow(desk, chat, &asked).await?;
    let read = asked.begins - 1;
    let mut link = Link::of_turn((asked.turn, asked.attempt), Cursor::after(read), read, read);
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

async fn follow(desk: &Desk, chat: &Chat, asked: &Asked) -> Result<Box<dyn Follow>, Reply> {
    let from = Cursor::after(asked.begins - 1);
    Ok(desk.ports.sessions.follow(&chat.session, from).await?)
}

/// Sends a message. One that is being answered already, or that has a name which was, is not sent
/// again.
async fn ask(desk: &Desk, chat: &Chat, key: Option<&String>) -> Result<Asked, Reply> {
    let sessions = &desk.ports.sessions;
    let before = sessions.view(&chat.session).await?;
    if let Some(asked) = same_message(&before, &chat.parts, key) {
        return join(desk, before, asked).await;
    }
    let toolset = desk.waiting_tools(&before);
    // A state that somebody holds is copied when the session goes on.
    drop(before);
    match sessions.submit(&chat.session, chat.command(key.cloned(), toolset)).await {
        Ok(receipt) => match brought(&receipt) {
            Some(asked) => {
                desk.tools_taken(&chat.session);
                Ok(asked)
            }
            None => {
                let state = sessions.view(&chat.session).await?;
                let known = key.and_then(|key| state.keyed(key)).map(known);
                join(desk, state, known.ok_or_else(Reply::busy)?).await
            }
        },
        // It may have come twice at the same time.
        Err(Error::Refused(Refusal::Busy(_))) => {
            let state = sessions.view(&chat.session).await?;
            same_message(&state, &chat.parts, key).ok_or_else(Reply::busy)
        }
        Err(error) => Err(error.into()),
    }
}

/// A turn that waits for somebody's word after a crash has it now.
async fn join(desk: &Desk, state: Arc<State>, asked: Asked) -> Result<Asked, Reply> {
    let held = state.open.as_ref().is_some_and(|open| open.id == asked.turn && open.held);
    let session = state.id.clone();
    drop(state);
    if held {
        let start = Command::Start { turn: asked.turn.clone() };
        desk.ports.sessions.submit(&session, start).await?;
    }
    Ok(asked)
}

/// The open turn, if this very message began it. A message with a name is only itself.
fn same_message(state: &State, parts: &[Part], key: Option<&String>) -> Option<Asked> {
    let open = state.open.as_ref()?;
    let turn = state.turn(&open.id)?;
    let message = state.messages.iter().find(|message| message.id == turn.message)?;
    let same = key.is_none_or(|key| turn.options.key.as_ref() == Some(key));
    (same && message.parts == parts).then(|| known(turn))
}

fn known(turn: &Turn) -> Asked {
    let (turn, attempt, begins) = (turn.id.clone(), turn.attempts, turn.begins);
    Asked { turn, attempt, begins, joined: true }
}

/// The turn that a command brought; nothing if it was there.
fn brought(receipt: &Receipt) -> Option<Asked> {
    let added = receipt.message()?;
    Some(Asked { turn: added.turn.clone(), attempt: 1, begins: added.seq, joined: false })
}
