//! Tests of subagents: how many, with which tools and limits, and that each is counted once.

use std::collections::BTreeMap;

use serde_json::json;

use crate::approval_id::ApprovalId;
use crate::command::Command;
use crate::event::{Budget, NewSession, SubagentUpdate};
use crate::id::{CallId, GeneratedId as _, SessionId};
use crate::model::Usage;
use crate::policy::SubagentLimits;
use crate::session::{Effect, next};
use crate::subagent::{DEPTH_LABEL, SPAWN_TOOL, Task, subagent_start};
use crate::tool::{Placement, ToolKind};

use super::{Session, rules, script};

/// A session whose model starts two subagents.
fn delegating(limits: SubagentLimits) -> Session {
    delegating_with(limits, r#"answer a spawn_agent + b spawn_agent {"n":2}"#)
}

fn delegating_with(limits: SubagentLimits, answer: &str) -> Session {
    let mut session = Session::default();
    session.change_rules(|rules| {
        rules.tools.push(rules::tool(SPAWN_TOOL, ToolKind::Delegate, Placement::Daemon));
        rules.subagents = limits;
    });
    for line in ["rules ask=read", "create", "say hi", answer] {
        session.play(line).unwrap();
    }
    session
}

pub(super) fn spawn(session: &mut Session, call: &str, tools: Option<&[&str]>) {
    let tools = tools.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    let task = Task { text: "look".into(), model: None, tools, budget: Budget::default() };
    let (call, child) = (CallId::named(call.into()), SessionId::named(format!("sess_{call}")));
    session.send(Command::SpawnSubagent { call, session: child, task }).unwrap();
}

fn completed(session: &mut Session, call: &str) {
    let usage = Usage { input: 10, output: 1, ..Usage::default() };
    let news = SubagentUpdate::Completed { result: "found".into(), ok: true, usage };
    let child = SessionId::named(format!("sess_{call}"));
    session
        .send(Command::Subagent { call: CallId::named(call.into()), session: child, news })
        .unwrap();
}

/// A session after this many turns with a subagent each, whose model requests another one as
/// `last`.
pub(super) fn after_subagents(turns: usize) -> Session {
    let mut session = delegating_with(SubagentLimits::default(), "answer");
    session.play("rules tokens=1000000").unwrap();
    for n in 0..turns {
        let call = format!("c{n}");
        for line in ["say more".to_owned(), format!("answer {call} spawn_agent")] {
            session.play(&line).unwrap();
        }
        spawn(&mut session, &call, None);
        completed(&mut session, &call);
        for line in [format!("done {call} found"), "answer".to_owned()] {
            session.play(&line).unwrap();
        }
    }
    session.play("say more").unwrap();
    session.play("answer last spawn_agent").unwrap();
    session
}

fn stops(session: &Session) -> Vec<String> {
    let effects = next(&session.state).into_iter();
    let stops = effects.filter_map(|effect| match effect {
        Effect::CancelSubagent(session) => Some(session.to_string()),
        _ => None,
    });
    stops.collect()
}

#[test]
fn the_cost_of_a_subagent_is_counted_once() {
    let mut session = delegating(SubagentLimits::default());
    let before = session.state.usage.total();
    spawn(&mut session, "a", None);
    completed(&mut session, "a");
    // As after a crash before the end of the call was stored.
    spawn(&mut session, "a", None);
    completed(&mut session, "a");
    assert_eq!(session.state.usage.total(), before + 11);
    assert_eq!(session.state.subagents.len(), 1);
    session.check_replay();
}

#[test]
fn an_ended_call_frees_its_slot_and_stops_its_subagent() {
    let mut session = delegating(SubagentLimits { at_once: 1, ..SubagentLimits::default() });
    spawn(&mut session, "a", None);
    spawn(&mut session, "b", None);
    assert!(session.log.last().unwrap().contains("1 subagents work already"), "{:?}", session.log);
    session.play("cancel").unwrap();
    session.play("stopped a").unwrap();
    assert!(session.state.open.is_none() && session.state.summary().open);
    assert_eq!(stops(&session), ["sess_a"]);
    completed(&mut session, "a");
    assert!(stops(&session).is_empty() && !session.state.summary().open);
    assert_eq!(session.state.usage.total(), 22, "stopped subagents count, too");
    session.check_replay();
}

#[test]
fn no_subagent_keeps_running_after_a_crash_during_its_stop() {
    let mut session = delegating(SubagentLimits::default());
    spawn(&mut session, "a", None);
    session.play("cancel").unwrap();
    session.play("recover").unwrap();
    assert!(session.state.open.is_none());
    assert_eq!(stops(&session), ["sess_a"]);
}

#[test]
fn a_subagent_has_at_most_the_tools_of_its_parent() {
    let mut session = delegating(SubagentLimits { depth: 1, ..SubagentLimits::default() });
    spawn(&mut session, "a", Some(&["look"]));
    spawn(&mut session, "b", Some(&[SPAWN_TOOL]));
    let known: Vec<_> = session.state.subagents.iter().cloned().collect();
    let begun = subagent_start(&session.state, &known[0]).unwrap();
    assert_eq!(begun.origin.toolset.unwrap().daemon.as_deref(), Some(&["look".to_owned()][..]));
    assert_eq!(begun.origin.labels["subagent_depth"], "1");
    assert_eq!(known.len(), 1, "the other one was refused");
    assert!(session.log.last().unwrap().contains("there is no tool spawn_agent to give"));
}

/// Models choose their own call ids, so two sessions may request approval for the same id.
#[test]
fn an_answer_applies_to_the_sessions_own_request_first() {
    let mut session = delegating_with(SubagentLimits::default(), "answer a spawn_agent + c1 look");
    spawn(&mut session, "a", None);
    session.play("assess c1").unwrap();
    let child = SessionId::named("sess_a".into());
    let question = ApprovalId::Call(CallId::named("c1".into()));
    let news = SubagentUpdate::Asked {
        call: question.clone(),
        tool: "shell".into(),
        input: json!({}),
        assessment: Box::new(script::assessment("")),
        expires: None,
    };
    let call = CallId::named("a".into());
    session.send(Command::Subagent { call, session: child.clone(), news }).unwrap();
    assert_eq!(session.state.approval_session(&question), None);
    session.play("allow c1").unwrap();
    assert_eq!(session.state.approval_session(&question), Some(&child));
}

/// Otherwise two subagents of one session could request approval for the same id.
#[test]
fn calls_of_subagents_get_generated_ids() {
    let named = |depth: &str| {
        let mut session = Session::default();
        let labels = BTreeMap::from([(DEPTH_LABEL.to_owned(), depth.to_owned())]);
        session.send(Command::Create(NewSession { labels, ..NewSession::default() })).unwrap();
        session.play("say hi").unwrap();
        session.play("answer c1 look").unwrap();
        session.check_replay();
        session.state.open.as_ref().unwrap().calls()[0].id().as_str() == "c1"
    };
    assert_eq!([named("0"), named("1"), named("2")], [true, false, false]);
}

/// The token budget of each call's subagent.
fn budgets(session: &Session) -> Vec<u64> {
    let budget = |known: &crate::session::Subagent| {
        known.delegation.as_ref()?.options.budget.as_ref()?.tokens
    };
    session.state.subagents.iter().map(|known| budget(known).unwrap()).collect()
}

#[test]
fn subagents_share_the_remaining_tokens_of_the_turn() {
    let two = "answer [50/50] a spawn_agent + b spawn_agent";
    let mut session = delegating_with(SubagentLimits::default(), two);
    spawn(&mut session, "a", None);
    spawn(&mut session, "b", None);
    assert_eq!(budgets(&session), [4_950, 4_950], "10,000 minus the tokens used");

    let budget = Budget { tokens: Some(400), ..Budget::default() };
    let limits = SubagentLimits { budget, ..SubagentLimits::default() };
    let three = "answer [9000/100] a spawn_agent + b spawn_agent + c spawn_agent";
    let mut session = delegating_with(limits, three);
    spawn(&mut session, "a", None);
    spawn(&mut session, "b", None);
    completed(&mut session, "a");
    spawn(&mut session, "c", None);
    assert_eq!(budgets(&session), [300, 300, 400], "unused tokens are shared again");
}
