//! Conversations that a client kept and goes on with: they take the place of what the session has.

use quintet_kernel::command::{Command, Recalled};
use quintet_kernel::event::Event;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port::Error;
use quintet_kernel::session::Refusal;
use quintet_kernel::{SessionId, State};

use super::{Connection, Trouble};
use crate::fallback;
use crate::windie::agent::turn_setup::TurnSetup;
use crate::windie::wire::rehydrate::{Entry, Rehydrate};

/// What is said to a client that brings another history in the middle of a query.
const BUSY: &str =
    "Cannot rehydrate a conversation while a query is active. Stop the current query and retry.";

impl Connection {
    /// Has a session go on with what the client kept, unless that is what it has.
    pub(super) async fn recall(&mut self, kept: Rehydrate) -> Result<(), Trouble> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let optional_events = (kept.workspace.as_deref(), &[][..]);
        let plan = TurnSetup::new(&self.app, &self.agent, &settings, optional_events).await;
        let workspace = plan.workspace.clone();
        let session = self.app.open(&self.identity, &kept.conversation, workspace.clone()).await?;
        self.follow(&kept.conversation, &session).await?;
        self.last = Some(kept.conversation.clone());
        let sessions = &self.app.ports.sessions;
        let state = sessions.view(&session).await?;
        if let Some(workspace) = workspace.filter(|_| !state.busy()) {
            sessions.submit(&session, Command::Move { workspace }).await?;
        }
        if is_same(&state, &kept.entries) {
            return Ok(());
        }
        let mut messages: Vec<Recalled> =
            kept.rules.iter().map(|rule| rules(rule.clone())).collect();
        for entry in &kept.entries {
            messages.push(self.recalled(&session, entry).await?);
        }
        match fallback::recall(&**sessions, &session, messages).await {
            Err(Error::Refused(Refusal::Busy(_))) => Err(BUSY.into()),
            done => Ok(done.map(drop)?),
        }
    }

    async fn recalled(&self, session: &SessionId, entry: &Entry) -> Result<Recalled, Trouble> {
        let mut recalled = entry.recalled();
        let picture = entry.screenshot.as_slice();
        for (kind, upload) in self.app.pictures(&self.identity, session, picture).await? {
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

fn rules(text: String) -> Recalled {
    Recalled { role: Role::User, parts: vec![Part::Context(text)], wording: None, call: None }
}

/// Whether the session has the same conversation: then it knows more of it than the client does.
fn is_same(state: &State, entries: &[Entry]) -> bool {
    let known = state.messages[state.forgotten.min(state.messages.len())..].iter();
    let known = known.filter(|message| message.role.speaks() && !message.interrupted);
    let known = known.map(|message| {
        let text = message.wording.clone().unwrap_or_else(|| message.text());
        (message.role, message.text().trim().to_owned(), text.trim().to_owned())
    });
    let known: Vec<_> = known.filter(|(_, text, _)| !text.is_empty()).collect();
    let told = entries.iter().filter(|entry| entry.role.speaks() && !entry.text.trim().is_empty());
    let told: Vec<_> = told.map(|entry| (entry.role, entry.text.trim())).collect();
    let same = |((role, text, wording), told): (&(Role, String, String), &(Role, &str))| {
        *role == told.0 && (text == told.1 || wording == told.1)
    };
    known.len() == told.len() && known.iter().zip(&told).all(same)
}
