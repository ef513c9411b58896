//! Handles messages for a model that is not configured or does not accept pictures.
//!
//! A client may name a model that no longer exists, and may send pictures without knowing which model is
//! used. Such a message is not refused: the session's own model answers it, and a model that accepts no
//! pictures is told that one was left out.

use quintet_kernel::command::{Command, ImportedMessage, NewMessage};
use quintet_kernel::message::{MediaKind, Part};
use quintet_kernel::port::{Error, Receipt, Sessions};
use quintet_kernel::{Refusal, SessionId};

/// The text that replaces the pictures of a message for a model that accepts none.
const PICTURES_LEFT_OUT: &str =
    "A picture of the screen came with this, but this model cannot see pictures.";

/// Submits a message, and again without the parts that the model refuses. Fails like any other command.
pub(crate) async fn submit_message(
    sessions: &dyn Sessions,
    session: &SessionId,
    message: NewMessage,
) -> Result<Receipt, Error> {
    retry_reduced(message, |message| {
        sessions.submit(session, Command::AddMessage(Box::new(message)))
    })
    .await
}

/// Calls `submit` with a message, and again without the parts that the model refuses.
pub(crate) async fn retry_reduced<T, F>(
    mut message: NewMessage,
    submit: impl Fn(NewMessage) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match submit(message.clone()).await {
            Err(Error::Refused(refusal)) if reduce(&mut message, &refusal) => {}
            done => return done,
        }
    }
}

/// Removes what was refused from a message; false if there is nothing to remove.
fn reduce(message: &mut NewMessage, refusal: &Refusal) -> bool {
    if let Refusal::UnknownModel(model) = refusal
        && message.options.model.take().is_some()
    {
        tracing::warn!(%model, "a model that a client chose is not configured");
        return true;
    }
    if is_picture(refusal) && !message.files.is_empty() {
        message.files.clear();
        message.parts.insert(0, Part::Context(PICTURES_LEFT_OUT.into()));
        return true;
    }
    false
}

/// Replaces a session's history, without its pictures if the model does not accept them.
pub(crate) async fn replace_history(
    sessions: &dyn Sessions,
    session: &SessionId,
    mut messages: Vec<ImportedMessage>,
) -> Result<Receipt, Error> {
    let import = |messages| Command::ImportMessages { messages, instead: true };
    match sessions.submit(session, import(messages.clone())).await {
        Err(Error::Refused(refusal)) if is_unsupported(&refusal) => {
            for message in &mut messages {
                message.parts.retain(|part| !matches!(part, Part::Media { .. }));
            }
            sessions.submit(session, import(messages)).await
        }
        done => done,
    }
}

fn is_unsupported(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::UnsupportedInput { .. })
}

fn is_picture(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::UnsupportedInput { kind: MediaKind::Image, .. })
}

#[cfg(test)]
mod tests;
