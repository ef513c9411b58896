//! Queries of the user: prepares the session and submits the message.

use quintet_kernel::command::{Command, NewMessage};
use quintet_kernel::event::Setup;
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::session::Turn;
use quintet_kernel::{SessionId, State, TurnId};
use serde_json::Value;

use super::stop::is_over;
use super::{Connection, Trouble};
use crate::fallback;
use crate::windie::agent::turn_setup::{Agent, TurnSetup};
use crate::windie::conversation::{ClientIdentity, is_ours};
use crate::windie::serve::AppState;
use crate::windie::wire::TOO_MANY;
use crate::windie::wire::query::{AGENT, Query, REVISION, SPEECH};

/// Turns under way, of one user and of all.
const MOST_OF_USER: usize = 4;
const MOST_OF_ALL: usize = 200;

impl Connection {
    pub(super) async fn query(&mut self, id: &str, query: Query) -> Result<(), Trouble> {
        if !self.app.has_capacity(&self.identity).await {
            self.attend(&query.conversation).await?;
            return Err(TOO_MANY.into());
        }
        let plan = self.plan(&query).await?;
        let workspace = plan.workspace.clone();
        let session = self.app.open(&self.identity, &query.conversation, workspace).await?;
        self.follow(&query.conversation, &session).await?;
        self.last = Some(query.conversation.clone());
        self.app.turns.begin((&session, id), &self.identity.id, self.number);
        let asked_for = self.ask(&session, (id, &query), &plan).await;
        let turn = asked_for.as_ref().ok().and_then(Receipt::turn);
        // One that was asked before may be over, and then nobody is told that it ends.
        if turn.is_none() && !self.app.is_open(&session, id).await {
            self.app.turns.end(&session, id);
        }
        let (turn, now) = (turn.cloned(), self.app.now());
        asked_for?;
        if let Some(turn) = turn
            && self.app.stops.meant(&self.identity.id, &query.conversation, id, now)
        {
            let stopped = Command::CancelTurn { turn, reason: None };
            self.app.ports.sessions.submit(&session, stopped).await?;
        }
        Ok(())
    }

    async fn ask(
        &self,
        session: &SessionId,
        (id, query): (&str, &Query),
        plan: &TurnSetup,
    ) -> Result<Receipt, Trouble> {
        let summary = self.app.ports.sessions.summary(session).await?;
        let files = self.app.pictures(&self.identity, session, &query.screenshots).await?;
        let say = plan.message((&self.identity.id, id), query, self.front_end_data(query, plan));
        // A session that another protocol began keeps its own instructions and tools.
        let setup = if is_ours(&summary.labels) { say.setup.clone() } else { Setup::default() };
        let supersedes = self.replaced(session, query).await?;
        let say = NewMessage { files, setup, supersedes, ..say };
        Ok(fallback::submit_message(&*self.app.ports.sessions, session, say).await?)
    }

    /// Notes which history the client has of a session.
    pub(super) fn note_revision(&mut self, session: &SessionId, revision: Option<String>) {
        if let Some(revision) = revision {
            self.revisions.insert(session.clone(), revision);
        }
    }

    /// The turn that a query is asked instead of, if it is a retry.
    async fn replaced(
        &self,
        session: &SessionId,
        query: &Query,
    ) -> Result<Option<TurnId>, Trouble> {
        let Some(revision) = &query.revision else { return Ok(None) };
        let state = self.app.ports.sessions.view(session).await?;
        let asker =
            Asker { agent: self.client.agent.as_deref(), brought: self.revisions.get(session) };
        Ok(retry_of(&state, (revision, &query.text), &asker))
    }

    /// What is kept with a query and no model is told: what the encoder has to know of it whenever the
    /// turn is told, and what the client keeps with it.
    fn front_end_data(&self, query: &Query, plan: &TurnSetup) -> Value {
        let notes = [
            (AGENT, self.client.agent.clone().map(Value::from)),
            (REVISION, query.revision.clone().map(Value::from)),
            (SPEECH, plan.speech.then_some(Value::Bool(true))),
        ];
        let mut data = query.front_end_data.clone();
        for (name, note) in notes {
            if let Some(note) = note {
                data[name] = note;
            }
        }
        data
    }

    async fn plan(&self, query: &Query) -> Result<TurnSetup, Trouble> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let of_query = query.definition.clone().map(Agent::new);
        let agent = of_query.as_ref().unwrap_or(&self.agent);
        let extra = (query.workspace.as_deref(), &query.layers[..]);
        Ok(TurnSetup::new(&self.app, agent, &settings, extra).await.with_rules(&query.rules))
    }
}

/// The client that sends a query, as far as it is known which histories it keeps.
struct Asker<'a> {
    agent: Option<&'a str>,
    /// The history that it brought back to this session.
    brought: Option<&'a String>,
}

/// The turn that a query is a retry of: the newest of the same text in a history that the client has left
/// for another one. Some clients name every query a history of its own, and may well ask the same thing
/// twice; so it counts only for one that was seen to keep to a history.
fn retry_of(state: &State, (revision, text): (&str, &str), asker: &Asker<'_>) -> Option<TurnId> {
    let note = |turn: &Turn, name: &str| {
        turn.options.front_end_data(name).and_then(Value::as_str).map(ToOwned::to_owned)
    };
    let asked: Vec<(&Turn, String)> =
        state.turns.iter().filter_map(|turn| Some((turn, note(turn, REVISION)?))).collect();
    // One that goes on with a history, also one that it brought back just now, replaces nothing.
    let is_known = |of: &String| of == revision;
    if asker.brought.is_some_and(is_known) || asked.iter().any(|(_, of)| is_known(of)) {
        return None;
    }
    let is_kept = |of: &String| {
        let mine =
            |turn: &Turn| asker.agent.is_some() && note(turn, AGENT).as_deref() == asker.agent;
        let turns = asked.iter().filter(|(turn, other)| other == of && mine(turn));
        asker.brought == Some(of) || turns.count() > 1
    };
    let current = asked.iter().rev().filter(|(turn, _)| !turn.superseded);
    let keeps = asked.iter().any(|(_, of)| is_kept(of));
    let said = |turn: &Turn| {
        let message = state.messages.iter().rfind(|message| message.id == turn.message);
        message.is_some_and(|message| message.text().trim() == text)
    };
    current.filter(|_| keeps).find(|(turn, _)| said(turn)).map(|(turn, _)| turn.id.clone())
}

impl AppState {
    /// True if a user may ask for one more turn. Turns whose connection is gone may be over.
    async fn has_capacity(&self, identity: &ClientIdentity) -> bool {
        let is_free = |(mine, all): (usize, usize)| mine < MOST_OF_USER && all < MOST_OF_ALL;
        if is_free(self.turns.count(&identity.id)) {
            return true;
        }
        for session in self.turns.sessions(None) {
            let state = match self.ports.sessions.view(&session).await {
                Ok(state) => Some(state),
                Err(Error::NotFound(_)) => None,
                Err(_) => continue,
            };
            let state = state.as_deref();
            self.turns.retain(&session, |key| state.is_some_and(|state| is_open(state, key)));
        }
        is_free(self.turns.count(&identity.id))
    }

    /// True if a session has a turn of that name that is not over.
    async fn is_open(&self, session: &SessionId, key: &str) -> bool {
        self.ports.sessions.view(session).await.is_ok_and(|state| is_open(&state, key))
    }
}

fn is_open(state: &State, key: &str) -> bool {
    state.turn_by_key(key).is_some_and(|turn| !is_over(turn.status))
}
