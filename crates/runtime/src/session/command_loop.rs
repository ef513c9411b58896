//! The main loop of a session: takes commands and results, commits their events and starts what
//! follows.

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

use crate::runtime::Shared;
use crate::session::effects::EffectTasks;
use crate::session::idle_memory::IdleMemory;
use crate::session::model_call::{ModelCall, next_chunks};
use crate::session::overhead_meter::OverheadMeter;
use crate::session::pending_appends::{DecidedEvents, PendingAppend, PendingReply, oldest_append};
use crate::session::recovery::Recovered;
use crate::session::recovery::write_output;
use crate::session::text_buffer::TextBuffer;
use crate::session::wake_timer::WakeTimer;
use crate::session::{CommandReply, SessionMessage, SubmittedCommand};
use crate::tail::Tail;

/// Appends that may be in progress before the session takes no more input, so that a stalled
/// disk does not fill memory.
const PENDING_APPENDS_LIMIT: usize = 64;

/// The longest time for which a recovered session holds its permit while its model is silent, so
/// that a provider that hangs does not hold up other sessions.
const FIRST_ANSWER_LIMIT: Duration = Duration::from_secs(1);

/// Why the loop ended.
pub(super) enum LiveEnd {
    /// The session has no work.
    Idle,
    /// The daemon shuts down.
    Closing,
    /// The session is to be deleted and has stopped all work.
    Deleted(Box<PendingDelete>),
    /// Events could not be stored; the state in memory is invalid.
    Broken(StorageError),
    /// The lease is lost; another node may own the session.
    Fenced,
}

/// A session that is to be deleted.
pub(super) struct PendingDelete {
    pub(super) lease: Lease,
    /// The subagents to delete with it.
    pub(super) subagents: Vec<SessionId>,
    /// Receives the result of the deletion.
    pub(super) reply: DeleteReply,
}

/// The reply to a deletion.
pub(super) type DeleteReply = oneshot::Sender<Result<(), Error>>;

/// A client that gets its reply when a turn has ended or is reverted, not when that is decided.
pub(super) struct TurnWaiter {
    pub(super) turn: TurnId,
    pub(super) receipt: Receipt,
    pub(super) reply: oneshot::Sender<CommandReply>,
}

/// A session in memory.
pub(super) struct LiveSession {
    pub(super) shared: Arc<Shared>,
    /// Shared with readers, so that viewing needs no copy; copied if it changes while shared.
    pub(super) state: Arc<State>,
    pub(super) lease: Lease,
    pub(super) tail: Arc<Tail>,
    /// The last event that was published.
    pub(super) published: Seq,
    /// The last event in the newest snapshot; 0 without a snapshot.
    pub(super) snapshot: Seq,
    /// Events that the next append takes.
    pub(super) decided: DecidedEvents,
    pub(super) pending: VecDeque<PendingAppend>,
    pub(super) model_call: Option<ModelCall>,
    /// Messages of the last prompt, reused in the next one.
    pub(super) prompts: PromptCache,
    pub(super) buffer: Option<TextBuffer>,
    /// When the next limit of the open turn is reached.
    pub(super) wake_timer: Option<WakeTimer>,
    /// Measures the turn that the last command started.
    pub(super) overhead: Option<OverheadMeter>,
    pub(super) effects: EffectTasks,
    /// Clients that wait until a cancelled turn has ended or a revert is done.
    pub(super) waiting: Vec<TurnWaiter>,
    /// The client that requested the deletion, which happens once the session is idle.
    pub(super) pending_delete: Option<DeleteReply>,
    /// Deletes recovery files of ended turns, on threads that may block.
    pub(super) cleanup: JoinSet<()>,
    /// True if a call of the open turn may have left recovery files.
    pub(super) needs_cleanup: bool,
    pub(super) idle_memory: IdleMemory,
    /// The permit of a session in recovery, held until its model responds or it waits for
    /// something else, but not longer than [`FIRST_ANSWER_LIMIT`].
    pub(super) recovery_permit: Option<OwnedSemaphorePermit>,
    /// Cancelled once the lease is void.
    void: CancellationToken,
}

impl LiveSession {
    /// A session whose lease holds until `void` is cancelled.
    pub(super) fn new(
        shared: Arc<Shared>,
        state: State,
        lease: Lease,
        void: CancellationToken,
    ) -> Self {
        let (tail, idle_memory) = (shared.tail(&state.id), IdleMemory::new(&shared));
        Self {
            idle_memory,
            published: state.head,
            tail,
            shared,
            state: Arc::new(state),
            lease,
            snapshot: 0,
            decided: DecidedEvents::default(),
            pending: VecDeque::new(),
            model_call: None,
            prompts: PromptCache::default(),
            buffer: None,
            wake_timer: None,
            overhead: None,
            effects: EffectTasks::default(),
            waiting: Vec::new(),
            pending_delete: None,
            cleanup: JoinSet::new(),
            needs_cleanup: false,
            recovery_permit: None,
            void,
        }
    }

    /// Continues from a journal that ended at `head`, and appends what recovery adds.
    pub(super) fn resume(&mut self, head: Seq, recovered: Recovered) {
        self.published = head;
        self.needs_cleanup = true;
        self.tail.begin(head);
        recovered.into_iter().for_each(|batch| self.commit(batch, None));
        // Storage may have failed before: nothing is started until this append is durable.
        if self.all_durable() {
            self.reconcile();
        }
    }

    /// Takes the message that was sent before, then further ones, until there is a reason
    /// to end.
    pub(super) async fn run(
        mut self,
        messages: &mut mpsc::Receiver<SessionMessage>,
        untaken: Option<SessionMessage>,
    ) -> LiveEnd {
        let (shared, void) = (Arc::clone(&self.shared), self.void.clone());
        let mut last_use = Instant::now();
        let place_until = last_use + FIRST_ANSWER_LIMIT;
        untaken.into_iter().for_each(|message| self.read(message));
        loop {
            self.append_decided();
            self.observe_activity(last_use);
            let idle = self.idle();
            if self.model_call.is_none() && self.pending.is_empty() {
                self.recovery_permit = None;
            }
            if idle
                && !self.state.busy()
                && let Some(reply) = self.pending_delete.take()
            {
                let sessions = self.state.subagents.iter().map(|known| known.session.clone());
                let subagents = sessions.collect();
                return LiveEnd::Deleted(Box::new(PendingDelete {
                    lease: self.lease,
                    subagents,
                    reply,
                }));
            }
            if idle {
                self.idle_memory.begin(&self.state);
            }
            let leave = Arc::clone(&self.idle_memory.leave);
            let room = self.pending.len() < PENDING_APPENDS_LIMIT;
            let due = self.wake_due();
            // The model comes last, so that fast output never delays a cancel.
            tokio::select! {
                biased;
                kept = oldest_append(&mut self.pending) => match kept {
                    Ok(_) => self.on_append_done(),
                    Err(error) => return self.storage_failed(error).await,
                },
                () = void.cancelled() => return self.fenced().await,
                () = shared.closing.cancelled() => return self.close().await,
                message = messages.recv(), if room => match message {
                    Some(message) => {
                        last_use = Instant::now();
                        self.idle_memory.end();
                        self.read(message);
                    }
                    None => return LiveEnd::Idle,
                },
                Some(command) = self.effects.done() => {
                    last_use = Instant::now();
                    self.handle_internal(command);
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.wake(),
                (step, chunks) = next_chunks(&mut self.model_call), if room => {
                    last_use = Instant::now();
                    self.recovery_permit = None;
                    self.on_model_chunks(&step, chunks);
                    // A model that is always ready must not starve other tasks of the thread.
                    consume_budget().await;
                }
                () = sleep_until(place_until), if self.recovery_permit.is_some() => self.recovery_permit = None,
                Some(_) = self.cleanup.join_next() => self.reconcile(),
                () = sleep_until(last_use + shared.deps.timing.hibernate_after), if idle => return self.hibernate().await,
                () = leave.notified(), if idle => return self.hibernate().await,
            }
        }
    }

    pub(super) fn idle(&self) -> bool {
        let working = self.model_call.is_some()
            || self.wake_timer.is_some()
            || !self.effects.is_empty()
            || !self.cleanup.is_empty();
        // Loading a session starts the grace time of all clients that claimed calls.
        let claimed = self.state.open.as_ref().is_some_and(|open| open.has_claims());
        !working && !claimed && self.pending.is_empty()
    }

    pub(super) fn read(&mut self, message: SessionMessage) {
        match message {
            SessionMessage::View(reply) => {
                let answer = PendingReply::View(reply, Arc::clone(&self.state));
                self.commit(Vec::new(), Some(answer));
            }
            SessionMessage::Submit(_, reply) if self.pending_delete.is_some() => {
                let gone = Error::NotFound(self.state.id.clone());
                let _ = reply.send(CommandReply::Answered(Err(gone)));
            }
            SessionMessage::Submit(submitted, reply) => self.submit(*submitted, reply),
            SessionMessage::Erase(reply) => {
                self.cancel_all();
                self.pending_delete = Some(reply);
            }
        }
    }

    /// Cancels all turns: pending ones first, so that none starts when the open one ends.
    pub(super) fn cancel_all(&mut self) {
        let waits = |turn: &&Turn| turn.status == TurnStatus::Pending;
        let waiting: Vec<_> =
            self.state.turns.iter().filter(waits).map(|turn| turn.id.clone()).collect();
        for turn in waiting {
            self.handle_internal(Command::CancelTurn { turn, reason: None });
        }
        self.handle_internal(Command::Cancel { reason: None });
    }

    pub(super) fn submit(
        &mut self,
        submitted: SubmittedCommand,
        reply: oneshot::Sender<CommandReply>,
    ) {
        let SubmittedCommand { command, received } = submitted;
        let had_open_turn = self.state.open.is_some();
        let waits_for = match (&command, &self.state.open) {
            (Command::Cancel { .. }, Some(open)) => Some(open.id.clone()),
            (Command::CancelTurn { turn, .. }, _) => Some(turn.clone()),
            (Command::Revert { turn } | Command::Reapply { turn }, _) => Some(turn.clone()),
            _ => None,
        };
        match self.execute(command) {
            Err(refusal) => {
                let _ = reply.send(CommandReply::Answered(Err(refusal.into())));
            }
            Ok(records) => match waits_for {
                Some(turn) if self.is_running(&turn) => {
                    let receipt =
                        Receipt { session: self.state.id.clone(), records: records.clone() };
                    self.waiting.push(TurnWaiter { turn, receipt, reply });
                    self.commit(records, None);
                }
                _ => {
                    let answer = PendingReply::receipt(reply, &self.state.id, records.clone());
                    self.commit(records, Some(answer));
                }
            },
        }
        if !had_open_turn && self.state.open.is_some() {
            self.measure(received);
        }
        self.reconcile();
    }

    pub(super) fn is_running(&self, turn: &TurnId) -> bool {
        let open = self.state.open.as_ref().is_some_and(|open| open.id == *turn);
        open || self.state.reverting.as_ref() == Some(turn)
    }

    /// Handles a result of the session's own work.
    pub(super) fn handle_internal(&mut self, command: Command) {
        self.apply_internal(command);
        self.reconcile();
    }

    /// Applies a result without starting what follows; false if the kernel refused it.
    pub(super) fn apply_internal(&mut self, command: Command) -> bool {
        match self.execute(command) {
            Ok(records) => {
                self.commit(records, None);
                true
            }
            Err(refusal) => {
                tracing::warn!(session = %self.state.id, %refusal, "the session refused a result of its own work");
                false
            }
        }
    }

    /// Lets the kernel decide a command. Buffered text is applied first, because it came
    /// first.
    pub(super) fn execute(&mut self, command: Command) -> Result<Vec<Arc<Record>>, Refusal> {
        let stamp = self.shared.deps.clock.stamp();
        let mut records = Vec::new();
        let state = Arc::make_mut(&mut self.state);
        if let Some(buffer) = &mut self.buffer {
            for output in buffer.drain() {
                records.extend(write_output(state, output, &stamp));
            }
        }
        match self.shared.deps.handle(state, command, &stamp) {
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

    /// Has records appended with the next append; the reply is sent once they, and everything
    /// that was decided before them, are durable.
    pub(super) fn commit(&mut self, records: Vec<Arc<Record>>, answer: Option<PendingReply>) {
        if !records.is_empty() || !self.decided.is_empty() {
            return self.decided.add(records, answer);
        }
        match (self.pending.back_mut(), answer) {
            (Some(last), Some(answer)) => last.answers.push(answer),
            (None, Some(answer)) => answer.give(),
            (_, None) => {}
        }
    }

    /// Starts the append of decided events. Slower work, such as assembling a prompt, happens while
    /// the disk is synced.
    pub(super) fn append_decided(&mut self) {
        if self.decided.is_empty() {
            return;
        }
        let decided = std::mem::take(&mut self.decided);
        let (journal, summary) = (&*self.shared.deps.journal, self.state.summary());
        self.pending.push_back(PendingAppend::begin(journal, &self.lease, decided, summary));
    }

    fn all_durable(&self) -> bool {
        self.decided.is_empty() && self.pending.is_empty()
    }

    /// Starts the wanted effects and stops the others, until nothing completes at once.
    pub(super) fn reconcile(&mut self) {
        loop {
            while let Some(command) = self.begin() {
                if !self.apply_internal(command) {
                    break;
                }
            }
            let Some(command) = self.unstarted_call() else { return };
            if !self.apply_internal(command) {
                return;
            }
        }
    }

    /// One round of [`Self::reconcile`]; returns the result of an effect that completed at
    /// once.
    pub(super) fn begin(&mut self) -> Option<Command> {
        let wanted = next(&self.state);
        self.effects.retain(|effect| wanted.contains(effect));
        let asks = |buffer: &TextBuffer| wanted.contains(&Effect::CallModel(buffer.step().clone()));
        if self.buffer.as_ref().is_some_and(|buffer| !asks(buffer)) {
            (self.buffer, self.model_call) = (None, None);
        }
        let mut wake_timer = None;
        for effect in wanted {
            match effect {
                Effect::CallModel(step) => {
                    self.append_decided();
                    self.start_model_call(step);
                }
                Effect::WakeAt(time) => wake_timer = self.wake_timer_for(time),
                effect if self.effects.runs(&effect) => {}
                effect if self.may_begin(&effect) => {
                    self.needs_cleanup |= matches!(effect, Effect::RunCall(_));
                    let over = self.effects.begin(effect, &self.state, &self.shared, &self.tail);
                    if over.is_some() {
                        return over;
                    }
                }
                _ => {}
            }
        }
        self.wake_timer = wake_timer;
        None
    }

    /// Effects that cannot be repeated wait until the decision is durable; a call also
    /// waits until the recovery files of an earlier attempt at its turn are deleted.
    pub(super) fn may_begin(&self, effect: &Effect) -> bool {
        let tidy = !matches!(effect, Effect::RunCall(_)) || self.cleanup.is_empty();
        effect.repeatable() || (self.all_durable() && tidy)
    }

    /// The end of a call that never started because its turn was stopped first; the turn
    /// waits for it.
    pub(super) fn unstarted_call(&self) -> Option<Command> {
        let open = self.state.open.as_ref().filter(|open| open.stopping.is_some())?;
        let never_began = |call: &&Call| {
            let started = matches!(call.phase, CallPhase::Started(_, Placement::Daemon));
            started && !self.effects.runs(&Effect::RunCall(call.id().clone()))
        };
        let call = open.calls().iter().find(never_began)?.id().clone();
        let outcome = Outcome::ended(Ending::Cancelled, "the turn was stopped");
        Some(Command::CallFinished { call, outcome })
    }
}
