//! The outcome of a call and the decision about it, from a session's events.

use std::collections::{BTreeMap, HashMap};

use quintet_kernel::event::{
    ApprovalDecision, DecidedBy, Event, Record, RememberScope, RequestedCall, Seq,
};
use quintet_kernel::message::text_of;
use quintet_kernel::tool::{Ending, Outcome, Placement, Risk, ToolKind};
use quintet_kernel::{CallId, SessionId, TurnId};
use serde_json::{Value, json};

use super::redact::Redactor;

/// The kinds of agents in the log.
const AGENTS: [&str; 2] = ["general", "code"];

/// The kind of agent of a session, by its labels.
pub(super) fn agent(labels: &BTreeMap<String, String>) -> &'static str {
    let [general, code] = AGENTS;
    if labels.contains_key("jarvis_session_id") { general } else { code }
}

/// A kind of agent by name.
pub(super) fn known_agent(name: &str) -> Option<&'static str> {
    AGENTS.into_iter().find(|agent| *agent == name)
}

/// The unfinished calls of a session.
#[derive(Clone, Debug)]
pub(super) struct Trail {
    session: SessionId,
    agent: Option<&'static str>,
    calls: HashMap<CallId, Draft>,
}

/// The recorded facts about a call.
#[derive(Clone, Debug)]
struct Draft {
    asked: Seq,
    input: Value,
    risk: Option<Risk>,
    decision: &'static str,
    by: &'static str,
    placement: Option<Placement>,
}

/// One line.
#[derive(Debug)]
pub(super) struct Entry(Value);

impl Entry {
    /// The line, without secrets.
    pub(super) fn line(&self, redactor: &Redactor) -> Vec<u8> {
        let mut entry = self.0.clone();
        for member in ["parameters", "result", "error"] {
            entry[member] = redactor.value(&entry[member]);
        }
        let mut line = entry.to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

impl Trail {
    pub(super) fn new(session: SessionId, agent: Option<&'static str>) -> Self {
        Self { session, agent, calls: HashMap::new() }
    }

    /// The kind of agent of the session, if it is known already.
    pub(super) fn agent(&self) -> Option<&'static str> {
        self.agent
    }

    /// The event that requested the oldest unfinished call.
    pub(super) fn oldest(&self) -> Option<Seq> {
        self.calls.values().map(|draft| draft.asked).min()
    }

    /// Processes an event; returns a line if it ends a call.
    pub(super) fn take(&mut self, record: &Record) -> Option<Entry> {
        match &record.event {
            Event::SessionCreated(origin) => self.agent = Some(agent(&origin.labels)),
            Event::ModelCompleted { calls, .. } => {
                calls.iter().for_each(|call| self.requested(call, record.seq));
            }
            Event::VerificationRequested { call, .. } => self.requested(call, record.seq),
            Event::ReviewRequested { call, assessment, .. }
            | Event::ApprovalRequested { call, assessment, .. } => {
                self.on(call, |draft| draft.risk = Some(assessment.risk));
            }
            Event::Reviewed { call, answer: Some(ApprovalDecision::Deny), .. } => {
                self.on(call, |draft| (draft.decision, draft.by) = ("denied", "review"));
            }
            Event::ApprovalAnswered { call, answer, by, remember, .. } => {
                let decision = decision_name(*answer, *by, *remember);
                self.on(call, |draft| (draft.decision, draft.by) = (decision, answerer(*by)));
            }
            Event::CallStarted { call, kind, placement, errand, .. } => {
                let risk = errand.as_ref().map(|errand| errand.risk);
                self.on(call, |draft| {
                    draft.risk = draft.risk.or(risk).or(Some(default_risk(*kind)));
                    draft.placement = Some(*placement);
                });
            }
            // A turn ends all its calls, but a fork may have been made in the middle of one.
            Event::TurnCompleted { .. }
            | Event::TurnFailed { .. }
            | Event::TurnCancelled { .. } => {
                self.calls.clear();
            }
            Event::CallCompleted { turn, call, tool, outcome, .. } => {
                let draft = self.calls.remove(call)?;
                return Some(self.entry(record, (turn, call, tool), &draft, outcome));
            }
            _ => {}
        }
        None
    }

    fn requested(&mut self, call: &RequestedCall, seq: Seq) {
        let draft = Draft {
            asked: seq,
            input: call.input.clone(),
            risk: None,
            decision: "auto",
            by: "policy",
            placement: None,
        };
        self.calls.insert(call.id.clone(), draft);
    }

    fn on(&mut self, call: &CallId, change: impl FnOnce(&mut Draft)) {
        if let Some(draft) = self.calls.get_mut(call) {
            change(draft);
        }
    }

    fn entry(
        &self,
        record: &Record,
        of: (&TurnId, &CallId, &String),
        draft: &Draft,
        outcome: &Outcome,
    ) -> Entry {
        let (turn, call, tool) = of;
        let (decision, by) = verdict(draft, outcome);
        let risk = match (draft.risk, decision) {
            (None, "refused") => "forbidden",
            (risk, _) => risk_name(risk.unwrap_or(Risk::Medium)),
        };
        Entry(json!({
            "timestamp": record.at.to_string(),
            "session_id": self.session.as_str(),
            "seq": record.seq,
            "turn_id": turn.as_str(),
            "call_id": call.as_str(),
            "tool_name": tool,
            "parameters": draft.input,
            "agent": self.agent.unwrap_or("code"),
            "placement": draft.placement.map(placement_name),
            "risk": risk,
            "decision": decision,
            "by": by,
            "ok": outcome.ok(),
            "result": outcome.ok().then(|| text_of(&outcome.parts)),
            "error": outcome.error,
        }))
    }
}

/// The final decision, and who made it.
fn verdict(draft: &Draft, outcome: &Outcome) -> (&'static str, &'static str) {
    match (outcome.ending, draft.placement) {
        // The client denied the call itself.
        (Ending::Denied, Some(Placement::Client)) => ("denied", "client"),
        (_, Some(_)) => (draft.decision, draft.by),
        (Ending::Denied, None) if draft.decision == "auto" => ("refused", "policy"),
        (Ending::Failed, None) => ("refused", "policy"),
        (Ending::Skipped, None) => ("skipped", "policy"),
        (Ending::Cancelled | Ending::Interrupted | Ending::TimedOut, None) => {
            ("cancelled", draft.by)
        }
        (Ending::Denied | Ending::Succeeded | Ending::Idle, None) => (draft.decision, draft.by),
    }
}

fn decision_name(answer: ApprovalDecision, by: DecidedBy, remember: RememberScope) -> &'static str {
    match (answer, by, remember) {
        (ApprovalDecision::Deny, ..) => "denied",
        (ApprovalDecision::Allow, DecidedBy::Client, RememberScope::Once) => "allow_once",
        (ApprovalDecision::Allow, ..) => "approved",
    }
}

fn answerer(by: DecidedBy) -> &'static str {
    match by {
        DecidedBy::Client => "client",
        DecidedBy::Clock => "timeout",
        DecidedBy::Memory => "remembered",
    }
}

fn placement_name(placement: Placement) -> &'static str {
    match placement {
        Placement::Daemon => "daemon",
        Placement::Client => "client",
    }
}

/// The risk of a call that was not assessed.
fn default_risk(kind: ToolKind) -> Risk {
    if kind.repeatable() { Risk::Low } else { Risk::Medium }
}

fn risk_name(risk: Risk) -> &'static str {
    match risk {
        Risk::Low => "safe",
        Risk::Medium | Risk::High => "risky",
        Risk::Critical => "forbidden",
    }
}
