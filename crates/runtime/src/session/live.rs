//! What a live session does: takes commands and news, keeps what they lead to, tells, and works.

mod hearing;
mod hibernation;
mod parting;
mod rest;
mod telling;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::port::{Error, Lease, Receipt, StorageError};
use quintet_kernel::prompt::PromptCache;
use quintet_kernel::session::{Call, CallPhase, Effect, Turn, TurnStatus, next};
use quintet_kernel::tool::{Ending, Outcome, Placement};
use quintet_kernel::{Refusal, SessionId, State, TurnId};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::load::Recovered;
use crate::load::write;
use crate::runtime::Shared;
use crate::session::asking::{Asking, heard};
use crate::session::flight::Flight;
use crate::session::live::rest::Rest;
use crate::session::pending::{Answer, Pending, oldest};
use crate::session::work::Work;
use crate::session::{Delivery, Mail};
use crate::tail::Tail;

/// Appends that may be under way before nothing new is taken: a disk that stands still must not fill
/// memory.
const BACKLOG: usize = 64;

/// How long a recovered session keeps others waiting for its model to begin to answer: a provider that
/// hangs holds up nobody else for good.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Why a session's task ends.
pub(super) enum End {
    /// The session has nothing to do.
    Idle,
    /// The daemon shuts down.
    Closing,
    /// The session is to be deleted and does nothing any more.
    Erased(Box<Erased>),
    /// What was decided could not be kept; the state in memory is worthless.
    Broken(StorageError),
    /// The lease is lost; another node may own the session.
    Fenced,
}

/// A session that is to be taken away.
pub(super) struct Erased {
    pub(super) lease: Lease,
    /// Sessions that worked for it, and go with it.
    pub(super) subagents: Vec<SessionId>,
    /// Told when the session is deleted.
    pub(super) reply: Farewell,
}

/// The reply to a deletion.
type Farewell = oneshot::Sender<Result<(), Error>>;

/// A client that is answered when a turn is over or undone, not when that is decided.
struct Waiting {
    turn: TurnId,
    receipt: Receipt,
    reply: oneshot::Sender<Delivery>,
}

/// A session in memory.
pub(super) struct Live {
    shared: Arc<Shared>,
    /// Shared with whoever looks at it, so that a look costs nothing; copied if it changes meanwhile.
    state: Arc<State>,
    lease: Lease,
    tail: Arc<Tail>,
    /// The last event that was published.
    published: Seq,
    /// The last event in the newest snapshot; 0 if there is none.
    pub(super) snapshot: Seq,
    pending: VecDeque<Pending>,
    asking: Option<Asking>,
    /// Messages of the last prompt, most of which the next one repeats.
    prompts: PromptCache,
    flight: Option<Flight>,
    work: Work,
    /// Clients that cancelled a turn, or had it undone, and wait until that is done.
    waiting: Vec<Waiting>,
    /// The client that had the session deleted, which is done as soon as it is idle.
    erasing: Option<Farewell>,
    /// Files of turns that are over are taken away, on threads that may wait for a disk.
    tidying: JoinSet<()>,
    rest: Rest,
    /// The session's place among those that are recovered at a time, until its model has begun to answer
    /// or it waits for something else, and not for longer than [`FIRST_ANSWER_LIMIT`].
    pub(super) place: Option<OwnedSemaphorePermit>,
    /// Cancelled once the lease is void.
    void: CancellationToken,
}

impl Live {
    /// A session whose lease holds until `void` is cancelled.
    pub(super) fn new(
        shared: Arc<Shared>,
        state: State,
        lease: Lease,
        void: CancellationToken,
    ) -> Self {
        let (tail, rest) = (shared.tail(&state.id), Rest::new(&shared));
        Self {
            rest,
            published: state.head,
            tail,
            shared,
            state: Arc::new(state),
            lease,
            snapshot: 0,
            pending: VecDeque::new(),
            asking: None,
            prompts: PromptCache::default(),
            flight: None,
            work: Work::default(),
            waiting: Vec::new(),
            erasing: None,
            tidying: JoinSet::new(),
            place: None,
            void,
        }
    }

    /// Goes on from a journal that ended at `head` and what recovery has to add to it.
    pub(super) fn resume(&mut self, head: Seq, recovered: Recovered) {
        self.published = head;
        self.tail.begin(head);
        recovered.into_iter().for_each(|batch| self.commit(batch, None));
        // Storage may be what failed before: nothing is begun until it has taken this.
        if self.pending.is_empty() {
            self.reconcile();
        }
    }

    /// Takes what was sent before, then what comes, until there is a reason to end.
    pub(super) async fn run(
        mut self,
        mail: &mut mpsc::Receiver<Mail>,
        unread: Option<Mail>,
    ) -> End {
        let (shared, void) = (Arc::clone(&self.shared), self.void.clone());
        let mut last_use = Instant::now();
        let place_until = last_use + FIRST_ANSWER_LIMIT;
        unread.into_iter().for_each(|letter| self.read(letter));
        loop {
            let idle = self.idle();
            if self.asking.is_none() && self.pending.is_empty() {
                self.place = None;
            }
            if idle
                && !self.state.busy()
                && let Some(reply) = self.erasing.take()
            {
                let sessions = self.state.subagents.iter().map(|known| known.session.clone());
                let subagents = sessions.collect();
                return End::Erased(Box::new(Erased { lease: self.lease, subagents, reply }));
            }
            if idle {
                self.rest.begin(&self.state);
            }
            let leave = Arc::clone(&self.rest.leave);
            let room = self.pending.len() < BACKLOG;
            let due = self.flight.as_ref().and_then(Flight::due);
            // The model comes last: however fast it writes, it never keeps a "stop" waiting.
            tokio::select! {
                biased;
                kept = oldest(&mut self.pending) => match kept {
                    Ok(_) => self.published(),
                    Err(error) => return self.broken(error).await,
                },
                () = void.cancelled() => return self.fenced().await,
                () = shared.closing.cancelled() => return self.close().await,
                letter = mail.recv(), if room => match letter {
                    Some(letter) => {
                        last_use = Instant::now();
                        self.rest.end();
                        self.read(letter);
                    }
                    None => return End::Idle,
                },
                Some(command) = self.work.done() => {
                    last_use = Instant::now();
                    self.news(command);
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.flush(),
                (step, heard) = heard(&mut self.asking), if room => {
                    last_use = Instant::now();
                    self.place = None;
                    self.hear(&step, heard);
                    // A model that is always ready must not keep the thread from everybody else.
                    consume_budget().await;
                }
                () = sleep_until(place_until), if self.place.is_some() => self.place = None,
                Some(_) = self.tidying.join_next() => self.reconcile(),
                () = sleep_until(last_use + shared.parts.pace.hibernate_after), if idle => return self.hibernate().await,
                () = leave.notified(), if idle => return self.hibernate().await,
            }
        }
    }

    fn idle(&self) -> bool {
        let working = self.asking.is_some() || !self.work.is_empty() || !self.tidying.is_empty();
        // A session that is read anew takes the clients that run something for lost.
        let claimed = self.state.open.as_ref().is_some_and(|open| open.has_claims());
        !working && !claimed && self.pending.is_empty()
    }

    fn read(&mut self, letter: Mail) {
        match letter {
            Mail::View(reply) => {
                let answer = Answer::View(reply, Arc::clone(&self.state));
                self.commit(Vec::new(), Some(answer));
            }
            Mail::Submit(_, reply) if self.erasing.is_some() => {
                let gone = Error::NotFound(self.state.id.clone());
                let _ = reply.send(Delivery::Answered(Err(gone)));
            }
            Mail::Submit(command, reply) => self.submit(*command, reply),
            Mail::Erase(reply) => {
                self.wind_up();
                self.erasing = Some(reply);
            }
        }
    }

    /// Calls everything off: what waits first, so that it does not begin when what runs has ended.
    fn wind_up(&mut self) {
        let waits = |turn: &&Turn| turn.status == TurnStatus::Pending;
        let waiting: Vec<_> =
            self.state.turns.iter().filter(waits).map(|turn| turn.id.clone()).collect();
        for turn in waiting {
            self.news(Command::Withdraw { turn, reason: None });
        }
        self.news(Command::Cancel { reason: None });
    }

    fn submit(&mut self, command: Command, reply: oneshot::Sender<Delivery>) {
        let waits_for = match (&command, &self.state.open) {
            (Command::Cancel { .. }, Some(open)) => Some(open.id.clone()),
            (Command::Withdraw { turn, .. }, _) => Some(turn.clone()),
            (Command::Revert { turn } | Command::Reapply { turn }, _) => Some(turn.clone()),
            _ => None,
        };
        match self.execute(command) {
            Err(refusal) => {
                let _ = reply.send(Delivery::Answered(Err(refusal.into())));
            }
            Ok(records) => match waits_for {
                Some(turn) if self.under_way(&turn) => {
                    let receipt =
                        Receipt { session: self.state.id.clone(), records: records.clone() };
                    self.waiting.push(Waiting { turn, receipt, reply });
                    self.commit(records, None);
                }
                _ => {
                    let answer = Answer::receipt(reply, &self.state.id, records.clone());
                    self.commit(records, Some(answer));
                }
            },
        }
        self.reconcile();
    }

    fn under_way(&self, turn: &TurnId) -> bool {
        let open = self.state.open.as_ref().is_some_and(|open| open.id == *turn);
        open || self.state.reverting.as_ref() == Some(turn)
    }

    /// Something that was under way is over.
    fn news(&mut self, command: Command) {
        self.learn(command);
        self.reconcile();
    }

    /// Has news decided upon; says whether it was taken.
    fn learn(&mut self, command: Command) -> bool {
        match self.execute(command) {
            Ok(records) => {
                self.commit(records, None);
                true
            }
            Err(refusal) => {
                tracing::warn!(session = %self.state.id, %refusal, "news was refused");
                false
            }
        }
    }

    /// Has the kernel decide. Text on its way comes first: it was there before.
    fn execute(&mut self, command: Command) -> Result<Vec<Arc<Record>>, Refusal> {
        let stamp = self.shared.parts.stamps.stamp();
        let mut records = Vec::new();
        let state = Arc::make_mut(&mut self.state);
        if let Some(flight) = &mut self.flight {
            for output in flight.drain() {
                records.extend(write(state, output, &stamp));
            }
        }
        match self.shared.parts.handle(state, command, &stamp) {
            Ok(more) => {
                records.extend(more);
                Ok(records)
            }
            Err(refusal) => {
                self.commit(records, None);
                Err(refusal)
            }
        }
    }

    /// Has records kept; whoever waits for them is answered then.
    fn commit(&mut self, records: Vec<Arc<Record>>, answer: Option<Answer>) {
        if records.is_empty() {
            match (self.pending.back_mut(), answer) {
                (Some(last), Some(answer)) => last.answers.push(answer),
                (None, Some(answer)) => answer.give(),
                (_, None) => {}
            }
            return;
        }
        let journal = &*self.shared.parts.journal;
        let (card, lease) = (self.state.card(), &self.lease);
        self.pending.push_back(Pending::begin(journal, lease, records, card, answer));
    }

    /// Begins what the session wants and ends what it does not want any more, until nothing is left
    /// that needs no waiting.
    fn reconcile(&mut self) {
        loop {
            while let Some(command) = self.begin() {
                if !self.learn(command) {
                    break;
                }
            }
            let Some(command) = self.unstarted() else { return };
            if !self.learn(command) {
                return;
            }
        }
    }

    /// One round of that. Gives what was over as soon as it began.
    fn begin(&mut self) -> Option<Command> {
        let wanted = next(&self.state);
        self.work.keep(|effect| wanted.contains(effect));
        let asks = |flight: &Flight| wanted.contains(&Effect::CallModel(flight.step().clone()));
        if self.flight.as_ref().is_some_and(|flight| !asks(flight)) {
            (self.flight, self.asking) = (None, None);
        }
        for effect in wanted {
            match effect {
                Effect::CallModel(step) => self.ask(step),
                effect if self.work.runs(&effect) => {}
                effect if self.may_begin(&effect) => {
                    let over = self.work.begin(effect, &self.state, &self.shared, &self.tail);
                    if over.is_some() {
                        return over;
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// What cannot be undone waits until the decision to do it is durable; a call also until nothing is
    /// taken away any more that an earlier attempt at its turn left.
    fn may_begin(&self, effect: &Effect) -> bool {
        let tidy = !matches!(effect, Effect::Run(_)) || self.tidying.is_empty();
        effect.repeatable() || (self.pending.is_empty() && tidy)
    }

    /// The end of a call that was to begin once that is durable, in a turn that must end by now: it
    /// never will, and the turn waits for its end all the same.
    fn unstarted(&self) -> Option<Command> {
        let open = self.state.open.as_ref().filter(|open| open.stopping.is_some())?;
        let never_began = |call: &&Call| {
            let started = matches!(call.phase, CallPhase::Started(_, Placement::Daemon));
            started && !self.work.runs(&Effect::Run(call.id().clone()))
        };
        let call = open.calls().iter().find(never_began)?.id().clone();
        let outcome = Outcome::ended(Ending::Cancelled, "the turn was stopped");
        Some(Command::Finished { call, outcome })
    }
}
