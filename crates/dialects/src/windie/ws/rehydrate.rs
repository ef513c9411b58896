//! Conversations that a client stored and continues.
//!
//! If the client kept only the beginning of the session's history, the later turns are replaced by its next
//! query. Any other history replaces that of the session.

use std::sync::Arc;

use quintet_kernel::command::{Command, ImportedMessage};
use quintet_kernel::event::Event;
use quintet_kernel::message::{Message, Part, Role};
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::session::Refusal;
use quintet_kernel::{SessionId, State, TurnId};

use super::{Connection, RequestError};
use crate::fallback;
use crate::windie::agent::turn_setup::TurnSetup;
use crate::windie::wire::rehydrate::{Entry, Rehydrate};

/// The error for a client that restores another history during a query.
const BUSY: &str =
    "Cannot rehydrate a conversation while a query is active. Stop the current query and retry.";

impl Connection {
    /// Continues a session with the history that the client stored, unless it has the same one.
    pub(super) async fn rehydrate(&mut self, kept: Rehydrate) -> Result<(), RequestError> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let extra = (kept.workspace.as_deref(), &[][..]);
        let plan = TurnSetup::new(&self.app, &self.agent, &settings, extra).await;
        let workspace = plan.workspace.clone();
        let session = self.app.open(&self.identity, &kept.conversation, workspace.clone()).await?;
        self.follow(&kept.conversation, &session).await?;
        self.last = Some(kept.conversation.clone());
        let sessions = Arc::clone(&self.app.ports.sessions);
        let state = sessions.view(&session).await?;
        if let Some(workspace) = workspace.filter(|_| !state.busy()) {
            sessions.submit(&session, Command::SetWorkspace { workspace }).await?;
        }
        if let Some(revision) = kept.revision.clone() {
            self.revisions.insert(session.clone(), revision);
        }
        let done = match compare(&state, &kept.entries) {
            Known::All => return Ok(()),
            Known::Before(from) => sessions.submit(&session, Command::Supersede { from }).await,
            Known::Other => self.replace(&session, &kept).await,
        };
        match done {
            Err(Error::Refused(Refusal::Busy(_))) => Err(BUSY.into()),
            done => Ok(done.map(drop)?),
        }
    }

    /// Replaces the history of a session.
    async fn replace(&self, session: &SessionId, kept: &Rehydrate) -> Result<Receipt, Error> {
        let mut messages: Vec<ImportedMessage> =
            kept.rules.iter().map(|rule| rules(rule.clone())).collect();
        for entry in &kept.entries {
            messages.push(self.recalled(session, entry).await?);
        }
        fallback::replace_history(&*self.app.ports.sessions, session, messages).await
    }

    async fn recalled(&self, session: &SessionId, entry: &Entry) -> Result<ImportedMessage, Error> {
        let mut recalled = entry.recalled();
        let pictures = &entry.screenshots;
        for (kind, upload) in self.app.pictures(&self.identity, session, pictures).await? {
            let receipt = self.app.ports.sessions.submit(session, Command::Attach(upload)).await?;
            recalled.parts.extend(receipt.records.iter().find_map(|record| match &record.event {
                Event::AttachmentAdded(file) => {
                    Some(Part::Media { kind, name: file.name.clone(), mime: None })
                }
                _ => None,
            }));
        }
        Ok(recalled)
    }
}

fn rules(text: String) -> ImportedMessage {
    ImportedMessage {
        role: Role::User,
        parts: vec![Part::Context(text)],
        wording: None,
        call: None,
    }
}

/// How the history of a session compares with the one that a client stored.
enum Known {
    /// The histories are the same.
    All,
    /// The session has this turn and later ones in addition, which the client removed.
    Before(TurnId),
    /// The histories differ.
    Other,
}

/// Compares the messages of a session with those that a client stored. If the session has all of them, its
/// own history is kept, because it also has pictures, results and thoughts.
fn compare(state: &State, entries: &[Entry]) -> Known {
    let (from, entries) = after_summary(state, entries);
    let is_current = |message: &&Arc<Message>| {
        let turn = state.turn(&message.turn);
        message.role.is_conversation()
            && !message.interrupted
            && turn.is_some_and(|turn| !turn.superseded)
    };
    let messages = state.messages.iter().skip(from).filter(is_current);
    let mut messages = messages.filter(|message| !message.text().trim().is_empty());
    let kept = entries
        .iter()
        .filter(|entry| entry.role.is_conversation() && !entry.text.trim().is_empty());
    for entry in kept {
        if !messages.next().is_some_and(|message| is_same(message, entry)) {
            return Known::Other;
        }
    }
    match messages.next() {
        None => Known::All,
        // A turn cannot be removed in part.
        Some(next) => match state.turn(&next.turn).filter(|turn| turn.message == next.id) {
            Some(turn) => Known::Before(turn.id.clone()),
            None => Known::Other,
        },
    }
}

/// Where the comparison begins: after the summary, if the client stored the same one.
fn after_summary<'e>(state: &State, entries: &'e [Entry]) -> (usize, &'e [Entry]) {
    if let (Some(summary), [first, rest @ ..]) = (&state.compaction.summary, entries)
        && first.text.trim_end().ends_with(summary.text.trim())
        && let Some(last) = state.messages.iter().rposition(|message| message.id == summary.upto)
    {
        return (last + 1, rest);
    }
    (state.forgotten, entries)
}

/// True if an entry is a message: in the user's words, or as it was sent to models, with notes on its files.
fn is_same(message: &Message, entry: &Entry) -> bool {
    let (text, kept) = (message.text(), entry.text.trim());
    let worded = message.wording.as_ref().unwrap_or(&text).trim();
    let named = message.parts.iter().any(|part| matches!(part, Part::Media { .. }));
    let same = kept == text.trim() || kept == worded || (named && kept.starts_with(worded));
    message.role == entry.role && same
}
