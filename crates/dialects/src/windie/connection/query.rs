//! Questions of the user: the session is made ready for them, then they are asked.

use quintet_kernel::command::{Command, Run, Say};
use quintet_kernel::event::{Event, Setup};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::session::Refusal;
use quintet_kernel::{SessionId, TurnId};
use serde_json::Value;

use super::super::conversation::is_ours;
use super::super::plan::{Agent, Plan};
use super::super::query::{AGENT, Query, REVISION, SPEECH};
use super::super::wire::TOO_MANY;
use super::{Connection, Out, Trouble};

/// Turns under way, of one user and of all.
const MOST_OF_USER: usize = 4;
const MOST_OF_ALL: usize = 200;
/// What a model that cannot see is told instead of a picture.
const UNSEEN: &str = "A picture of the screen came with this, but this model cannot see pictures.";

impl Connection {
    pub(super) async fn query(
        &mut self,
        id: &str,
        query: Query,
        out: &mut Out,
    ) -> Result<(), Trouble> {
        let (mine, all) = self.desk.rooms.busy(&self.guest.id);
        if mine >= MOST_OF_USER || all >= MOST_OF_ALL {
            return Err(TOO_MANY.into());
        }
        let plan = self.plan(&query).await?;
        let workspace = plan.workspace.clone();
        let session = self.desk.open(&self.guest, &query.conversation, workspace).await?;
        let name = (self.guest.id.clone(), query.conversation.clone());
        let room = self.desk.rooms.enter(&name, &session).await?;
        self.listen(&name, &room, out);
        self.last = Some(query.conversation.clone());
        room.reserve(id, self.number);
        let asked_for = self.ask(&session, (id, &query), &plan).await;
        // Where it was asked, it counts as soon as it is told.
        match &asked_for {
            Ok(receipt) if asked(receipt).is_some() => {}
            Ok(_) => room.release(id),
            Err(_) => room.forget(id),
        }
        let receipt = asked_for?;
        let now = self.desk.now();
        if self.desk.stops.meant(&self.guest.id, &query.conversation, id, now)
            && let Some(turn) = asked(&receipt)
        {
            let stopped = Command::Withdraw { turn: turn.clone(), reason: None };
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
        self.say(session, Say { files, setup, ..say }).await
    }

    /// What is kept with a query and no model is told: what the encoder has to know of it whenever the
    /// turn is told, and what the client keeps with it.
    fn aside(&self, query: &Query, plan: &Plan) -> Value {
        let notes = [
            (AGENT, self.name.clone().map(Value::from)),
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

    /// Asks. A model that is not to be had makes way for the usual one, and one that cannot see is told
    /// so instead of being shown pictures.
    async fn say(&self, session: &SessionId, mut say: Say) -> Result<Receipt, Trouble> {
        loop {
            let command = Command::Say(Box::new(say.clone()));
            match self.desk.ports.sessions.submit(session, command).await {
                Ok(receipt) => return Ok(receipt),
                Err(Error::Refused(Refusal::UnknownModel(model)))
                    if say.options.model.is_some() =>
                {
                    tracing::warn!(%model, "a model that a user chose is not configured");
                    say.options.model = None;
                }
                Err(Error::Refused(Refusal::UnsupportedInput {
                    kind: MediaKind::Image, ..
                })) => {
                    say.files.clear();
                    say.parts.insert(0, Part::Context(UNSEEN.into()));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// The turn that a message asked for.
fn asked(receipt: &Receipt) -> Option<&TurnId> {
    receipt.records.iter().find_map(|record| match &record.event {
        Event::MessageAdded { turn, .. } => Some(turn),
        _ => None,
    })
}
