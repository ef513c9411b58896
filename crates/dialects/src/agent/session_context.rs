//! What the encoder must know of earlier events: the number of each turn, the model's output so far, when
//! calls started.
//!
//! A context may start in the middle of a session; [`SessionContext::is_complete`] is true if it started
//! early enough to know the open turn.

use std::collections::HashMap;
use std::time::Duration;

use quintet_kernel::event::{Event, Record, Seq, SubagentUpdate};
use quintet_kernel::model::{Channel, FinishReason, Usage};
use quintet_kernel::{CallId, Item, SessionId, Time, TurnId};

/// What the encoder must know of a session's earlier events.
#[derive(Clone, Debug)]
pub(super) struct SessionContext {
    pub(super) session: SessionId,
    pub(super) workspace: String,
    /// The model that was last chosen or called; at first the default model.
    pub(super) model: String,
    /// The last event that was encoded.
    pub(super) last: Seq,
    /// The output of the open step.
    pub(super) output: Vec<(Channel, String)>,
    /// The length of `output` in bytes.
    pub(super) written: u64,
    turns: HashMap<TurnId, u64>,
    open: Option<(TurnId, Time)>,
    calls: HashMap<CallId, Time>,
    /// The open step, and the one before it, of the open turn.
    steps: [Option<Step>; 2],
    subagents: HashMap<SessionId, SubagentProgress>,
    knows_turn: bool,
}

/// One model call.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The number of the step in its turn.
    pub(super) nth: u64,
    pub(super) started: Time,
    pub(super) usage: Usage,
    /// The finish reason, after the model call ended.
    pub(super) finish: Option<FinishReason>,
}

/// The start of a running subagent, and the number of its model calls.
#[derive(Clone, Copy, Debug)]
struct SubagentProgress {
    started: Time,
    steps: u64,
}

impl SessionContext {
    /// A context that starts after an event. `setting` is the workspace and the model.
    pub(super) fn new(session: SessionId, setting: (String, String), after: Seq) -> Self {
        let (workspace, model) = setting;
        Self {
            session,
            workspace,
            model,
            last: after,
            output: Vec::new(),
            written: 0,
            turns: HashMap::new(),
            open: None,
            calls: HashMap::new(),
            steps: [None, None],
            subagents: HashMap::new(),
            knows_turn: after == 0,
        }
    }

    /// Records that no turn is open where the context starts.
    pub(super) fn mark_idle(&mut self) {
        self.knows_turn = true;
    }

    /// True if everything is known about the open turn.
    pub(super) fn is_complete(&self) -> bool {
        let known = |(turn, _): &(TurnId, Time)| self.turns.contains_key(turn);
        self.knows_turn && self.open.as_ref().is_none_or(known)
    }

    /// The number of a turn in the session, from 1.
    pub(super) fn nth(&self, turn: &TurnId) -> Option<u64> {
        self.turns.get(turn).copied().filter(|nth| *nth > 0)
    }

    /// The duration of the open turn, in milliseconds.
    pub(super) fn turn_duration(&self, now: Time) -> Option<u64> {
        self.open.as_ref().map(|(_, started)| millis(now.since(*started)))
    }

    /// The duration of a call, in milliseconds; 0 if it never started.
    pub(super) fn call_duration(&self, call: &CallId, now: Time) -> u64 {
        self.calls.get(call).map_or(0, |started| millis(now.since(*started)))
    }

    /// The last step of the open turn.
    pub(super) fn step(&self) -> Option<&Step> {
        self.steps[0].as_ref()
    }

    /// The step before the last one.
    pub(super) fn step_before(&self) -> Option<&Step> {
        self.steps[1].as_ref()
    }

    /// The duration of a subagent, in milliseconds, and the number of its model calls.
    pub(super) fn subagent(&self, session: &SessionId, now: Time) -> (u64, u64) {
        let known = self.subagents.get(session);
        known.map_or((0, 0), |known| (millis(now.since(known.started)), known.steps))
    }

    /// Adds an item. [`Self::finish`] must follow for each event, after it was encoded.
    pub(super) fn apply(&mut self, item: &Item) {
        match item {
            Item::Text { channel, text, .. } => {
                self.written += text.len() as u64;
                match self.output.last_mut() {
                    Some((last, output)) if last == channel => output.push_str(text),
                    _ => self.output.push((*channel, text.to_string())),
                }
            }
            Item::Event(record) => self.apply_event(record),
            Item::Progress { .. } => {}
        }
    }

    fn apply_event(&mut self, record: &Record) {
        match &record.event {
            Event::SessionCreated(origin) => {
                if let Some(model) = &origin.model {
                    self.model = model.to_string();
                }
            }
            Event::MessageAdded { turn, nth, .. } => {
                self.turns.insert(turn.clone(), *nth);
            }
            Event::TurnStarted { turn, .. } => {
                self.steps = [None, None];
                self.open = Some((turn.clone(), record.at));
                self.knows_turn = true;
            }
            Event::StepStarted { model, .. } => {
                self.model = model.to_string();
                self.output.clear();
                self.written = 0;
                let [last, before] = &mut self.steps;
                *before = last.take();
                let nth = before.as_ref().map_or(1, |step| step.nth + 1);
                let (started, usage) = (record.at, Usage::default());
                *last = Some(Step { nth, started, usage, finish: None });
            }
            Event::ModelCompleted { usage, finish, .. } => {
                if let Some(step) = &mut self.steps[0] {
                    step.usage = *usage;
                    step.finish = Some(finish.clone());
                }
            }
            Event::Subagent { session, news, .. } => self.apply_subagent(session, news, record.at),
            Event::CallStarted { call, .. } => {
                self.calls.insert(call.clone(), record.at);
            }
            _ => {}
        }
    }

    fn apply_subagent(&mut self, session: &SessionId, news: &SubagentUpdate, at: Time) {
        let working = self.subagents.entry(session.clone());
        let working = working.or_insert(SubagentProgress { started: at, steps: 0 });
        if let SubagentUpdate::Progressed { steps, .. } = news {
            working.steps = *steps;
        }
    }

    /// Removes what an event ended, after the event was encoded.
    pub(super) fn finish(&mut self, record: &Record) {
        self.last = record.seq;
        match &record.event {
            Event::ModelSwitched { model } => self.model = model.to_string(),
            Event::ModelCompleted { .. } | Event::StepInterrupted { .. } => {
                self.output.clear();
                self.written = 0;
            }
            Event::CallCompleted { call, .. } => {
                self.calls.remove(call);
            }
            Event::Subagent { session, news: SubagentUpdate::Completed { .. }, .. } => {
                self.subagents.remove(session);
            }
            Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::TurnCancelled { turn, .. } => {
                if self.open.as_ref().is_none_or(|(open, _)| open == turn) {
                    self.open = None;
                    self.calls.clear();
                    self.steps = [None, None];
                    self.knows_turn = true;
                }
                self.turns.remove(turn);
            }
            _ => {}
        }
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
