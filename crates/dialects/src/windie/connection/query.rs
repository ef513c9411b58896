//! Questions of the user: the session is made ready for them, then they are asked.

use quintet_kernel::command::{Command, Run, Say};
use quintet_kernel::event::Event;
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::session::Refusal;
use quintet_kernel::{SessionId, TurnId};

use super::super::conversation::is_ours;
use super::super::plan::{Agent, Plan};
use super::super::query::Query;
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
        room.reserve(id, query.revision.as_deref(), self.number);
        if plan.speech {
            room.speak(id);
        }
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
        self.make_ready(session, plan).await?;
        let pictures = self.desk.attach(&self.guest, session, &query.screenshots).await?;
        self.say(session, (id, query, &pictures), plan).await
    }

    async fn plan(&self, query: &Query) -> Result<Plan, Trouble> {
        let settings = self.desk.settings_of(&self.guest.id).await?;
        let of_query = query.definition.clone().map(Agent::new);
        let agent = of_query.as_ref().unwrap_or(&self.agent);
        let beside = (query.workspace.as_deref(), &query.layers[..]);
        Ok(Plan::new(&self.desk, agent, &settings, beside).await.with_rules(&query.rules))
    }

    /// Has the session follow the client's instructions and offer its tools. One that another protocol
    /// began keeps its own instructions and tools, and has none of the client's.
    async fn make_ready(&self, session: &SessionId, plan: &Plan) -> Result<(), Trouble> {
        let sessions = &self.desk.ports.sessions;
        let state = sessions.view(session).await?;
        // What is under way goes on with what it began with.
        if !is_ours(&state) || state.busy() {
            return Ok(());
        }
        let moved = plan.workspace.clone().map(|workspace| Command::Move { workspace });
        for command in plan.commands().into_iter().chain(moved) {
            match sessions.submit(session, command).await {
                Ok(_) | Err(Error::Refused(Refusal::Busy(_))) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Asks. A model that is not to be had makes way for the usual one, and one that cannot see is told
    /// so instead of being shown pictures.
    async fn say(
        &self,
        session: &SessionId,
        (id, query, pictures): (&str, &Query, &[String]),
        plan: &Plan,
    ) -> Result<Receipt, Trouble> {
        let (content, aside) = (query.content.clone(), query.aside.clone());
        let mut options = plan.options((&self.guest.id, id), content, aside);
        let mut parts = query.parts(pictures);
        loop {
            let (parts_now, options_now) = (parts.clone(), options.clone());
            let say =
                Say { role: Role::User, parts: parts_now, run: Run::Next, options: options_now };
            match self.desk.ports.sessions.submit(session, Command::Say(Box::new(say))).await {
                Ok(receipt) => return Ok(receipt),
                Err(Error::Refused(Refusal::UnknownModel(model))) if options.model.is_some() => {
                    tracing::warn!(%model, "a model that a user chose is not configured");
                    options.model = None;
                }
                Err(Error::Refused(Refusal::UnsupportedInput {
                    kind: MediaKind::Image, ..
                })) => {
                    parts.retain(|part| !matches!(part, Part::Media { .. }));
                    parts.insert(0, Part::Context(UNSEEN.into()));
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
