//! Questions of the user: the session is made ready for them, then they are asked.

use quintet_kernel::command::{Command, Run, Say};
use quintet_kernel::event::Setup;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::{SessionId, State};
use serde_json::Value;

use super::stop::is_over;
use super::{Connection, Trouble};
use crate::fallback;
use crate::windie::agent::turn_setup::{Agent, Plan};
use crate::windie::conversation::{Guest, is_ours};
use crate::windie::serve::Desk;
use crate::windie::wire::TOO_MANY;
use crate::windie::wire::query::{AGENT, Query, REVISION, SPEECH};

/// Turns under way, of one user and of all.
const MOST_OF_USER: usize = 4;
const MOST_OF_ALL: usize = 200;

impl Connection {
    pub(super) async fn query(&mut self, id: &str, query: Query) -> Result<(), Trouble> {
        if !self.desk.has_capacity(&self.guest).await {
            self.attend(&query.conversation).await?;
            return Err(TOO_MANY.into());
        }
        let plan = self.plan(&query).await?;
        let workspace = plan.workspace.clone();
        let session = self.desk.open(&self.guest, &query.conversation, workspace).await?;
        self.follow(&query.conversation, &session).await?;
        self.last = Some(query.conversation.clone());
        self.desk.turns.begin((&session, id), &self.guest.id, self.number);
        let asked_for = self.ask(&session, (id, &query), &plan).await;
        let turn = asked_for.as_ref().ok().and_then(Receipt::turn);
        // One that was asked before may be over, and then nobody is told that it ends.
        if turn.is_none() && !self.desk.is_open(&session, id).await {
            self.desk.turns.end(&session, id);
        }
        let (turn, now) = (turn.cloned(), self.desk.now());
        asked_for?;
        if let Some(turn) = turn
            && self.desk.stops.meant(&self.guest.id, &query.conversation, id, now)
        {
            let stopped = Command::Withdraw { turn, reason: None };
            self.desk.ports.sessions.submit(&session, stopped).await?;
        }
        Ok(())
    }

    async fn ask(
        &self,
        session: &SessionId,
        (id, query): (&str, &Query),
        plan: &Plan,
    ) -> Result<Receipt, Trouble> {
        let card = self.desk.ports.sessions.card(session).await?;
        // A session that another protocol began keeps its own instructions and tools.
        let setup = if is_ours(&card.labels) { plan.setup() } else { Setup::default() };
        let files = self.desk.pictures(&self.guest, session, &query.screenshots).await?;
        let aside = self.aside(query, plan);
        let options = plan.options((&self.guest.id, id), query.content.clone(), aside);
        let say = Say::new(Role::User, vec![Part::Text(query.text.clone())], Run::Next, options);
        let say = Say { files, setup, ..say };
        Ok(fallback::say(&*self.desk.ports.sessions, session, say).await?)
    }

    /// What is kept with a query and no model is told: what the encoder has to know of it whenever the
    /// turn is told, and what the client keeps with it.
    fn aside(&self, query: &Query, plan: &Plan) -> Value {
        let notes = [
            (AGENT, self.client.agent.clone().map(Value::from)),
            (REVISION, query.revision.clone().map(Value::from)),
            (SPEECH, plan.speech.then_some(Value::Bool(true))),
        ];
        let mut aside = query.aside.clone();
        for (name, note) in notes {
            if let Some(note) = note {
                aside[name] = note;
            }
        }
        aside
    }

    async fn plan(&self, query: &Query) -> Result<Plan, Trouble> {
        let settings = self.desk.settings_of(&self.guest.id).await?;
        let of_query = query.definition.clone().map(Agent::new);
        let agent = of_query.as_ref().unwrap_or(&self.agent);
        let beside = (query.workspace.as_deref(), &query.layers[..]);
        Ok(Plan::new(&self.desk, agent, &settings, beside).await.with_rules(&query.rules))
    }
}

impl Desk {
    /// True if a user may ask for one more turn. Turns whose connection is gone may be over.
    async fn has_capacity(&self, guest: &Guest) -> bool {
        let is_free = |(mine, all): (usize, usize)| mine < MOST_OF_USER && all < MOST_OF_ALL;
        if is_free(self.turns.count(&guest.id)) {
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
        is_free(self.turns.count(&guest.id))
    }

    /// True if a session has a turn of that name that is not over.
    async fn is_open(&self, session: &SessionId, key: &str) -> bool {
        self.ports.sessions.view(session).await.is_ok_and(|state| is_open(&state, key))
    }
}

fn is_open(state: &State, key: &str) -> bool {
    state.keyed(key).is_some_and(|turn| !is_over(turn.status))
}
