//! Queries of the user: prepares the session and submits the message.

use quintet_kernel::command::{Command, NewMessage};
use quintet_kernel::event::Setup;
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::session::Turn;
use quintet_kernel::{SessionId, State, TurnId};
use serde_json::Value;

use super::stop::is_over;
use super::{Connection, RequestError};
use crate::fallback;
use crate::windie::agent::turn_setup::{Agent, TurnSetup};
use crate::windie::conversation::{ClientIdentity, is_ours};
use crate::windie::serve::AppState;
use crate::windie::wire::TOO_MANY;
use crate::windie::wire::query::{AGENT, Query, REVISION, SPEECH};

/// The most open turns, of one user and of all.
const USER_TURNS_LIMIT: usize = 4;
const TURNS_LIMIT: usize = 200;

impl Connection {
    pub(super) async fn query(&mut self, id: &str, query: Query) -> Result<(), RequestError> {
        if !self.app.has_capacity(&self.identity).await {
            self.follow_known(&query.conversation).await?;
            return Err(TOO_MANY.into());
        }
        let plan = self.plan(&query).await?;
        let workspace = plan.workspace.clone();
        let session = self.app.open(&self.identity, &query.conversation, workspace).await?;
        self.follow(&query.conversation, &session).await?;
        self.last = Some(query.conversation.clone());
        self.app.turns.begin((&session, id), &self.identity.id, self.number);
        let receipt = self.submit(&session, (id, &query), &plan).await;
        let turn = receipt.as_ref().ok().and_then(Receipt::turn);
        // The turn of a repeated query may have ended, and then no end is sent that would forget it.
        if turn.is_none() && !self.app.is_open(&session, id).await {
            self.app.turns.end(&session, id);
        }
        let (turn, now) = (turn.cloned(), self.app.now());
        receipt?;
        if let Some(turn) = turn
            && self.app.stops.take(&self.identity.id, &query.conversation, id, now)
        {
            let cancel = Command::CancelTurn { turn, reason: None };
            self.app.ports.sessions.submit(&session, cancel).await?;
        }
        Ok(())
    }

    async fn submit(
        &self,
        session: &SessionId,
        (id, query): (&str, &Query),
        plan: &TurnSetup,
    ) -> Result<Receipt, RequestError> {
        let summary = self.app.ports.sessions.summary(session).await?;
        let files = self.app.pictures(&self.identity, session, &query.screenshots).await?;
        let say = plan.message((&self.identity.id, id), query, self.front_end_data(query, plan));
        // A session that another protocol began keeps its own instructions and tools.
        let setup = if is_ours(&summary.labels) { say.setup.clone() } else { Setup::default() };
        let supersedes = self.replaced(session, query).await?;
        let say = NewMessage { files, setup, supersedes, ..say };
        Ok(fallback::submit_message(&*self.app.ports.sessions, session, say).await?)
    }

    /// The turn that a query replaces, if it is a retry.
    async fn replaced(
        &self,
        session: &SessionId,
        query: &Query,
    ) -> Result<Option<TurnId>, RequestError> {
        let Some(revision) = &query.revision else { return Ok(None) };
        let state = self.app.ports.sessions.view(session).await?;
        let client = Histories {
            agent: self.client.agent.as_deref(),
            restored: self.revisions.get(session),
        };
        Ok(retry_of(&state, (revision, &query.text), &client))
    }

    /// The data that is stored with a query and not sent to models: what the encoder needs to know of the
    /// query, and what the client sent.
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

    async fn plan(&self, query: &Query) -> Result<TurnSetup, RequestError> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let of_query = query.definition.clone().map(Agent::new);
        let agent = of_query.as_ref().unwrap_or(&self.agent);
        let extra = (query.workspace.as_deref(), &query.layers[..]);
        Ok(TurnSetup::new(&self.app, agent, &settings, extra).await.with_rules(&query.rules))
    }
}

/// The client that sends a query, and what is known of the histories that it stores.
struct Histories<'a> {
    agent: Option<&'a str>,
    /// The id of the history that it restored in this session.
    restored: Option<&'a String>,
}

/// The turn that a query is a retry of: the newest with the same text in a history that the client has
/// replaced by another one. Some clients send a new history id with every query and may repeat a query; so
/// this applies only to clients that have used the same id twice.
fn retry_of(
    state: &State,
    (revision, text): (&str, &str),
    client: &Histories<'_>,
) -> Option<TurnId> {
    let note = |turn: &Turn, name: &str| {
        turn.options.front_end_data(name).and_then(Value::as_str).map(ToOwned::to_owned)
    };
    let turns: Vec<(&Turn, String)> =
        state.turns.iter().filter_map(|turn| Some((turn, note(turn, REVISION)?))).collect();
    // A query that continues a history replaces nothing.
    let is_known = |of: &String| of == revision;
    if client.restored.is_some_and(is_known) || turns.iter().any(|(_, of)| is_known(of)) {
        return None;
    }
    let is_own =
        |turn: &Turn| client.agent.is_some() && note(turn, AGENT).as_deref() == client.agent;
    let is_reused = |id: &String| {
        let same = turns.iter().filter(|(turn, of)| of == id && is_own(turn));
        client.restored == Some(id) || same.count() > 1
    };
    let has_text = |turn: &Turn| {
        let message = state.messages.iter().rfind(|message| message.id == turn.message);
        message.is_some_and(|message| message.text().trim() == text)
    };
    if !turns.iter().any(|(_, of)| is_reused(of)) {
        return None;
    }
    let mut current = turns.iter().rev().filter(|(turn, _)| !turn.superseded);
    current.find(|(turn, _)| has_text(turn)).map(|(turn, _)| turn.id.clone())
}

impl AppState {
    /// True if a user may start one more turn. Turns whose connection is gone may have ended unnoticed.
    async fn has_capacity(&self, identity: &ClientIdentity) -> bool {
        let is_free = |(mine, all): (usize, usize)| mine < USER_TURNS_LIMIT && all < TURNS_LIMIT;
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

    /// True if a session has a turn with that id of the client that has not ended.
    async fn is_open(&self, session: &SessionId, key: &str) -> bool {
        self.ports.sessions.view(session).await.is_ok_and(|state| is_open(&state, key))
    }
}

fn is_open(state: &State, key: &str) -> bool {
    state.turn_by_key(key).is_some_and(|turn| !is_over(turn.status))
}
