//! A test environment that executes the effects of a session, promptly or late, successfully or
//! not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::codec;
use quintet_kernel::command::{Approve, Command};
use quintet_kernel::event::{
    ApprovalDecision, DecidedBy, Event, NewSession, Record, RememberScope, SubagentUpdate,
};
use quintet_kernel::id::{CallId, GeneratedId, MessageId, SessionId, StepId, TurnId};
use quintet_kernel::message::{MediaKind, Role};
use quintet_kernel::model::{
    self, FinishReason, ModelRef, Profile, Prompt, PromptMessage, SearchSupport, Usage,
};
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};
use quintet_kernel::prompt::{PromptCache, assemble, assemble_next, summary_prompt};
use quintet_kernel::session::{CallPhase, evolve, handle, next};
use quintet_kernel::tool::{
    Assessment, CallSubject, Ending, Outcome, Placement, Risk, ToolKind, ToolSpec,
};
use quintet_kernel::{ApprovalId, Effect, Stamp, State, Time};
use serde_json::json;

/// The tools, and one that does not exist.
pub(crate) const TOOLS: [&str; 9] =
    ["look", "edit", "shell", "fetch", "verify", "desk", "pen", "jot", "nonsense"];

/// Rules with all these tools; tests change the rest.
pub(crate) fn rules() -> Rules {
    use Placement::*;
    use ToolKind::*;
    let of = [Read, Write, Exec, Network, Exec, Read, Write, Memory].into_iter();
    let at = [Daemon, Daemon, Daemon, Daemon, Daemon, Client, Client, Daemon];
    let tool = |((name, kind), placement): ((&str, ToolKind), Placement)| {
        let (name, description, schema) = (name.into(), String::new(), json!({}));
        Arc::new(ToolSpec { name, description, schema, kind, placement, strict: false })
    };
    let approval = ApprovalPolicy {
        rules: vec![],
        kinds: vec![],
        tools: vec![],
        on_deny: OnDeny::Continue,
        expires: None,
    };
    Rules {
        approval,
        review: ReviewMode::Off,
        context_tokens: 0,
        save_memory: false,
        verify: VerifyPolicy { auto: true, tool: "verify".into(), attempts: 2 },
        limits: Limits {
            steps: 5,
            tokens: 100_000,
            time: Duration::from_secs(600),
            repeats: 2,
            compact_at_percent: 80,
            assumed_window: 128_000,
        },
        recovery: Recovery::Continue,
        client_grace: Duration::from_secs(30),
        subagents: SubagentLimits::default(),
        tools: TOOLS.into_iter().zip(of).zip(at).map(tool).collect(),
        default_model: ModelRef::parse("small/a").unwrap(),
    }
}

/// The profiles of each provider's models.
pub(crate) fn profiles() -> HashMap<String, Profile> {
    let search = SearchSupport::default();
    let profile = |context_window| Profile { inputs: vec![], tools: true, context_window, search };
    HashMap::from([
        ("small".to_owned(), profile(Some(100))),
        ("large".to_owned(), Profile { inputs: vec![MediaKind::Image], ..profile(None) }),
    ])
}

/// Passes the model profiles to the state, as the runtime does.
pub(crate) fn set_profiles(
    state: &mut State,
    command: &Command,
    profiles: &HashMap<String, Profile>,
) {
    let known = |model: ModelRef| Some((model.clone(), profiles.get(&model.provider)?.clone()));
    let profiles = state.models_for(command).into_iter().filter_map(known).collect();
    state.set_profiles(profiles);
}

/// Work that is to be done for a session.
#[derive(Clone, Debug)]
pub(crate) enum PendingWork {
    /// Answer the model call.
    Model(StepId),
    /// Describe the workspace.
    GatherContext(TurnId),
    /// Review the change.
    Review(CallId),
    /// Revert the turn.
    Revert(TurnId),
    /// Assess the call.
    Assess(CallId),
    /// Answer the approval request of the call.
    Approve(CallId),
    /// Run the call, in the daemon or at the client.
    Run(CallId),
    /// Report the end of a call that was stopped.
    Report(CallId),
    /// Save the facts of a summary.
    Save(MessageId),
    /// Write the summary.
    Summarize(MessageId),
    /// Stop the subagent of a call that has ended.
    Cancel(SessionId),
    /// Resume the turn.
    Release(TurnId),
}

/// A session, its journal and its clock.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) journal: Vec<Arc<Record>>,
    pub(crate) now: Time,
    pub(crate) profiles: HashMap<String, Profile>,
    seed: u64,
    /// Calls that were running at a recovery and must not run again.
    lost: BTreeSet<CallId>,
    /// The prompt cache of the session.
    prompts: PromptCache,
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        let state = State::new(SessionId::named("sess".into()), Arc::new(rules));
        let now = Time::from_micros(1_735_689_600_000_000);
        let profiles = profiles();
        let (journal, lost, prompts) = Default::default();
        Self { state, journal, now, profiles, seed: 0, lost, prompts }
    }

    /// The same session after a crash that left the first `events` events.
    pub(crate) fn crashed(&self, state: &State, events: usize) -> Self {
        let (state, journal) = (state.clone(), self.journal[..events].to_vec());
        let now = journal.last().map_or(self.now, |record| record.at);
        let profiles = self.profiles.clone();
        let (lost, prompts) = Default::default();
        Self { state, journal, now, profiles, seed: u64::MAX / 2, lost, prompts }
    }

    /// A fork of the session after `events` events.
    pub(crate) fn forked(&self, state: &State, events: usize) -> Self {
        let mut fork = self.crashed(state, events);
        let event = Event::Forked { parent: SessionId::named("parent".into()), at: events as u64 };
        let record = Record { seq: events as u64 + 1, at: fork.now, event };
        evolve(&mut fork.state, &record);
        fork.journal.push(Arc::new(record));
        fork
    }

    pub(crate) fn create(&mut self) {
        self.send(Command::Create(NewSession {
            workspace: "/work".into(),
            ..NewSession::default()
        }));
    }

    /// Sends a command and checks what must always be true.
    pub(crate) fn send(&mut self, command: Command) {
        if matches!(command, Command::Recover { .. }) {
            self.lost.extend(running(&self.state));
        }
        self.seed += 1;
        let stamp = Stamp::new(self.now, [self.seed, 7]);
        set_profiles(&mut self.state, &command, &self.profiles);
        if let Ok(records) = handle(&mut self.state, command, &stamp) {
            self.journal.extend(records);
        }
        for effect in next(&self.state) {
            if let Effect::RunCall(call) = effect {
                assert!(!self.lost.contains(&call), "{call} runs again after a crash");
            }
        }
        self.check_prompts();
    }

    /// The pending work, without timers.
    pub(crate) fn pending_work(&self) -> Vec<PendingWork> {
        let effect = |effect| match effect {
            Effect::CallModel(step) => Some(PendingWork::Model(step)),
            Effect::GatherContext(turn) => Some(PendingWork::GatherContext(turn)),
            Effect::AssessCall(call) => Some(PendingWork::Assess(call)),
            Effect::ReviewCall(call) => Some(PendingWork::Review(call)),
            Effect::RevertTurn(turn) => Some(PendingWork::Revert(turn)),
            Effect::RunCall(call) => Some(PendingWork::Run(call)),
            Effect::Summarize(upto) => Some(PendingWork::Summarize(upto)),
            Effect::SaveMemory(upto) => Some(PendingWork::Save(upto)),
            Effect::CancelSubagent(session) => Some(PendingWork::Cancel(session)),
            Effect::WakeAt(_) => None,
        };
        let mut pending_work: Vec<PendingWork> =
            next(&self.state).into_iter().filter_map(effect).collect();
        let Some(open) = &self.state.open else { return pending_work };
        if open.held && open.stopping.is_none() {
            pending_work.push(PendingWork::Release(open.id.clone()));
        }
        pending_work.extend(open.calls().iter().filter_map(|call| match call.phase {
            CallPhase::Asked { .. } => Some(PendingWork::Approve(call.id().clone())),
            CallPhase::Started(_, Placement::Client) => Some(PendingWork::Run(call.id().clone())),
            CallPhase::Started(_, Placement::Daemon) => {
                // Includes calls that were never an effect, because the turn was stopped when they
                // were started or recovered.
                open.stopping.is_some().then(|| PendingWork::Report(call.id().clone()))
            }
            _ => None,
        }));
        pending_work
    }

    /// Executes all pending work, and advances the clock only if there is none.
    pub(crate) fn settle(&mut self) {
        for _ in 0..100 {
            let alarm = next(&self.state).into_iter().find_map(|effect| match effect {
                Effect::WakeAt(time) => Some(time),
                _ => None,
            });
            let due = alarm.filter(|time| *time <= self.now);
            match (due, self.pending_work().first().cloned(), alarm) {
                (None, Some(pending_work), _) => self.send(successful(&self.state, pending_work)),
                (_, _, Some(time)) => {
                    self.now = self.now.max(time);
                    self.send(Command::Wake);
                }
                (_, None, None) => break,
                (Some(_), _, None) => unreachable!("only an alarm can be due"),
            }
        }
        assert!(!self.state.busy(), "does not become idle: {:?}", self.state.open);
        assert!(self.state.saving.is_empty(), "something is not saved: {:?}", self.state.saving);
    }

    /// Checks that the journal gives the same state, can be encoded and decoded, and ends every
    /// turn once.
    pub(crate) fn check_journal(&self) {
        let mut again = State::new(self.state.id.clone(), Arc::new(rules()));
        for (n, record) in self.journal.iter().enumerate() {
            assert_eq!(record.seq, n as u64 + 1);
            let event = codec::decode(codec::VERSION, &codec::encode(&record.event)).unwrap();
            assert_eq!(event, record.event);
            again.replay([&**record]);
        }
        assert_eq!(again, self.state);
        check_questions(&self.journal);
        let open = check_turns(&self.journal);
        assert_eq!(open, self.state.open.as_ref().map(|open| open.id.clone()));
    }

    fn check_prompts(&mut self) {
        if self.state.compaction.pending.is_some() {
            check_pairs(&summary_prompt(&self.state));
        }
        let Some(open) = self.state.open.as_ref().filter(|open| open.step().is_some()) else {
            return;
        };
        let prompt = assemble(&self.state);
        let next = assemble_next(&self.state, &mut self.prompts);
        assert_eq!(next.messages, prompt.messages, "a cached message differs");
        check_pairs(&prompt);
        let turn = self.state.turn(&open.id).unwrap();
        let asked = self.state.messages.iter().find(|message| message.id == turn.message).unwrap();
        if asked.role == Role::User {
            let last = prompt.messages.last().unwrap();
            assert!(!matches!(**last, PromptMessage::Assistant { .. }), "nothing to answer");
        }
    }
}

/// The command that reports successful execution.
pub(crate) fn successful(state: &State, pending_work: PendingWork) -> Command {
    match pending_work {
        PendingWork::Cancel(session) => {
            let known = state.subagents.orphans().find(|known| known.session == session);
            let (result, usage) = (String::new(), Usage { input: 1, ..Usage::default() });
            let news = SubagentUpdate::Completed { result, ok: false, usage };
            Command::Subagent { call: known.unwrap().call.clone(), session, news }
        }
        PendingWork::Model(step) => {
            let usage = Usage { input: 10, output: 1, ..Usage::default() };
            let answer = model::ModelResponse::new(FinishReason::Stop, vec![], usage);
            Command::ModelCompleted { step, answer }
        }
        PendingWork::GatherContext(turn) => Command::ContextGathered { turn, sections: vec![] },
        PendingWork::Review(call) => reviewed(call, Some(ApprovalDecision::Allow)),
        PendingWork::Revert(turn) => Command::RevertFinished { turn, result: Ok(()) },
        PendingWork::Assess(call) => Command::Assessed { call, assessment: assessment().into() },
        PendingWork::Approve(call) => Command::Approve(approval(call, ApprovalDecision::Allow)),
        PendingWork::Run(call) => Command::CallFinished { call, outcome: Outcome::success("done") },
        PendingWork::Report(call) => {
            Command::CallFinished { call, outcome: Outcome::ended(Ending::Cancelled, "killed") }
        }
        PendingWork::Summarize(upto) => {
            let summary = "short\nREMEMBER:\n- a fact".into();
            Command::SummaryWritten { upto, summary, usage: Usage::default() }
        }
        PendingWork::Save(upto) => Command::MemorySaved { upto, result: Ok("memory/a.md".into()) },
        PendingWork::Release(turn) => Command::StartTurn { turn },
    }
}

pub(crate) fn approval(call: CallId, answer: ApprovalDecision) -> Approve {
    let (by, remember) = (DecidedBy::Client, RememberScope::Once);
    let question = ApprovalId::Call(call);
    Approve { question, turn: None, answer, reason: None, by, remember, content: None }
}

pub(crate) fn reviewed(call: CallId, answer: Option<ApprovalDecision>) -> Command {
    Command::Reviewed { call, answer, comment: "successful".into(), usage: Usage::default() }
}

pub(crate) fn assessment() -> Assessment {
    Assessment {
        risk: Risk::High,
        reasons: vec![],
        reversible: false,
        preview: "rm".into(),
        subject: CallSubject::default(),
        settled: None,
    }
}

/// Running calls that must not be repeated.
fn running(state: &State) -> Vec<CallId> {
    let calls = state.open.iter().flat_map(|open| open.calls());
    calls
        .filter(|call| match call.phase {
            CallPhase::Started(kind, Placement::Daemon) => !kind.repeatable(),
            _ => false,
        })
        .map(|call| call.id().clone())
        .collect()
}

/// Checks that the calls of a response are followed by their results, and that there are no other
/// results.
pub(crate) fn check_pairs(prompt: &Prompt) {
    let mut due: Vec<CallId> = Vec::new();
    let mut seen = BTreeSet::new();
    for message in &prompt.messages {
        match &**message {
            PromptMessage::Result { call, .. } => assert_eq!(Some(call), due.pop().as_ref()),
            PromptMessage::System(_) | PromptMessage::User(_) => assert!(due.is_empty()),
            PromptMessage::Assistant { parts, .. } => {
                assert!(due.is_empty());
                due = model::assistant_calls(parts).map(|call| call.call.clone()).collect();
                due.reverse();
                assert!(due.iter().all(|call| seen.insert(call.clone())), "a call twice");
            }
        }
    }
    assert!(due.is_empty(), "a call without a result");
}

/// Checks that only running calls ask questions, that questions are closed once, and that none
/// outlives its call.
fn check_questions(journal: &[Arc<Record>]) {
    let (mut running, mut open) = (BTreeSet::new(), BTreeSet::new());
    let (mut current, mut stopping) = (None, false);
    for record in journal {
        match &record.event {
            Event::TurnStarted { turn, .. } => (current, stopping) = (Some(turn), false),
            Event::StopRequested { .. } => stopping = true,
            Event::CallStarted { call, .. } => {
                running.insert(call.clone());
            }
            Event::CallCompleted { call, .. } => {
                running.remove(call);
            }
            Event::QuestionAsked { call, id, .. } => {
                assert!(!stopping && running.contains(call), "{call} does not run");
                assert!(open.insert(id.clone()), "{id} is asked twice");
            }
            Event::QuestionAnswered { id, .. } => assert!(open.remove(id), "{id} is closed twice"),
            Event::StepStarted { turn, .. }
            | Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::TurnCancelled { turn, .. }
                if current == Some(turn) =>
            {
                assert!(open.is_empty(), "questions of ended calls are open: {open:?}");
            }
            _ => {}
        }
    }
}

/// Checks that turns do not overlap, that attempts are counted, and that each turn ends once, after
/// all its calls. Returns the open turn.
fn check_turns(journal: &[Arc<Record>]) -> Option<TurnId> {
    let mut attempts: HashMap<TurnId, u32> = HashMap::new();
    let mut open: Option<TurnId> = None;
    let mut stopping = false;
    let mut calls: BTreeMap<CallId, bool> = BTreeMap::new();
    let mut holders: BTreeMap<CallId, (String, bool)> = BTreeMap::new();
    for record in journal {
        match &record.event {
            Event::TurnStarted { turn, attempt, .. } => {
                assert_eq!(open, None);
                let before = attempts.insert(turn.clone(), *attempt).unwrap_or(0);
                assert_eq!(*attempt, before + 1);
                (open, stopping) = (Some(turn.clone()), false);
            }
            // The turn was cancelled before it started.
            Event::TurnCancelled { turn, .. } if open.as_ref() != Some(turn) => {
                assert_eq!(attempts.get(turn), None);
            }
            Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::TurnCancelled { turn, .. } => {
                assert_eq!(open.take().as_ref(), Some(turn));
                assert!(calls.is_empty(), "calls of an ended turn are open: {calls:?}");
            }
            Event::StopRequested { turn, .. } => {
                assert_eq!(open.as_ref(), Some(turn));
                assert!(!stopping, "stopped twice");
                stopping = true;
            }
            Event::StepStarted { turn, .. } => {
                assert!(!stopping && open.as_ref() == Some(turn));
                assert!(calls.is_empty(), "the model is called while calls are open: {calls:?}");
            }
            Event::ModelCompleted { calls: asked, .. } => {
                for call in asked {
                    assert_eq!(calls.insert(call.id.clone(), false), None);
                }
            }
            Event::VerificationRequested { call, .. } => {
                assert_eq!(calls.insert(call.id.clone(), false), None);
            }
            Event::CallStarted { call, .. } => {
                assert!(!stopping);
                assert_eq!(calls.insert(call.clone(), true), Some(false), "started twice");
            }
            Event::CallClaimed { call, by, .. } => {
                assert_eq!(calls.get(call), Some(&true), "{call} does not run");
                if let Some((name, lost)) = holders.insert(call.clone(), (by.name.clone(), false)) {
                    assert!(lost && name == by.name, "{call} has two holders");
                }
            }
            Event::ClaimHolderLost { call, by, .. } => {
                let holder = holders.insert(call.clone(), (by.name.clone(), true));
                assert_eq!(holder.map(|(name, _)| name).as_ref(), Some(&by.name));
            }
            Event::ClaimReleased { call, .. } => {
                assert!(holders.remove(call).is_some_and(|(_, lost)| lost), "{call} was held");
            }
            Event::CallCompleted { call, .. } => {
                assert!(calls.remove(call).is_some(), "{call} ended twice");
                holders.remove(call);
            }
            Event::SessionCreated(_)
            | Event::Forked { .. }
            | Event::Labelled { .. }
            | Event::ModelSwitched { .. }
            | Event::Instructed { .. }
            | Event::Moved { .. }
            | Event::Forgotten { .. }
            | Event::Superseded { .. }
            | Event::ToolsChosen(_)
            | Event::AttachmentAdded(_)
            | Event::MessageAdded { .. }
            | Event::TextAppended { .. }
            | Event::ModelRetrying { .. }
            | Event::StepInterrupted { .. }
            | Event::ContextGathered { .. }
            | Event::ReviewRequested { .. }
            | Event::Reviewed { .. }
            | Event::RevertRequested { .. }
            | Event::Reverted { .. }
            | Event::RevertFailed { .. }
            | Event::ApprovalRequested { .. }
            | Event::ApprovalAnswered { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. }
            | Event::TurnResumed { .. }
            | Event::TurnHeld { .. }
            | Event::TurnReleased { .. }
            | Event::CompactionRequested { .. }
            | Event::Compacted { .. }
            | Event::CompactionFailed { .. }
            | Event::MemorySaved { .. }
            | Event::MemoryNotSaved { .. }
            | Event::Subagent { .. }
            | Event::SessionClosed { .. } => {}
        }
    }
    open
}
