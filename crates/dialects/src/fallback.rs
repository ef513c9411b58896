//! Handles messages for a model that is not configured or does not accept pictures.
//!
//! A client may use the name of a model that no longer exists, and may send pictures without knowing which
//! model answers. Such a message is not refused: the session's own model answers it, and a model that accepts
//! no pictures is told that one was left out.

use quintet_kernel::command::{Command, ImportedMessage, NewMessage};
use quintet_kernel::message::{MediaKind, Part};
use quintet_kernel::port::{Error, Receipt, Sessions};
use quintet_kernel::{Refusal, SessionId};

/// The text that replaces the pictures of a message for a model that takes none.
const PICTURES_LEFT_OUT: &str =
    "A picture of the screen came with this, but this model cannot see pictures.";

/// Submits a message, and again without what the model refuses. Fails like any other command.
pub(crate) async fn say(
    sessions: &dyn Sessions,
    session: &SessionId,
    say: NewMessage,
) -> Result<Receipt, Error> {
    until_taken(say, |say| sessions.submit(session, Command::AddMessage(Box::new(say)))).await
}

/// Tries a message out, and again without what the model refuses.
pub(crate) async fn until_taken<T, F>(
    mut say: NewMessage,
    submit: impl Fn(NewMessage) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        match submit(say.clone()).await {
            Err(Error::Refused(refusal)) if reduce(&mut say, &refusal) => {}
            done => return done,
        }
    }
}

/// Takes out of a message what was refused; false if there is nothing to take out.
fn reduce(say: &mut NewMessage, refusal: &Refusal) -> bool {
    if let Refusal::UnknownModel(model) = refusal
        && say.options.model.take().is_some()
    {
        tracing::warn!(%model, "a model that a client chose is not configured");
        return true;
    }
    if is_picture(refusal) && !say.files.is_empty() {
        say.files.clear();
        say.parts.insert(0, Part::Context(PICTURES_LEFT_OUT.into()));
        return true;
    }
    false
}

/// Replaces a session's history, without its pictures if the model does not accept them.
pub(crate) async fn recall(
    sessions: &dyn Sessions,
    session: &SessionId,
    mut messages: Vec<ImportedMessage>,
) -> Result<Receipt, Error> {
    let recall = |messages| Command::ImportMessages { messages, instead: true };
    match sessions.submit(session, recall(messages.clone())).await {
        Err(Error::Refused(refusal)) if is_unsupported(&refusal) => {
            for message in &mut messages {
                message.parts.retain(|part| !matches!(part, Part::Media { .. }));
            }
            sessions.submit(session, recall(messages)).await
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
