//! The rules that scripts start from, and the words that change them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::message::MediaKind;
use crate::model::{ModelRef, Profile, SearchSupport};
use crate::policy::{
    Action, ApprovalPolicy, Limits, OnDeny, Pattern, Recovery, ReviewMode, Rule, Rules,
    SubagentLimits, VerifyPolicy,
};
use crate::tool::{Placement, ToolKind, ToolSpec};

use super::Session;

/// Nothing needs approval, nothing is verified, and `fake/a` takes pictures and 1000 tokens.
pub(crate) fn rules() -> Rules {
    Rules {
        approval: ApprovalPolicy {
            rules: Vec::new(),
            kinds: Vec::new(),
            tools: Vec::new(),
            on_deny: OnDeny::Continue,
            expires: None,
        },
        review: ReviewMode::Off,
        context_tokens: 0,
        save_memory: false,
        verify: VerifyPolicy { auto: false, tool: "verify".into(), attempts: 2 },
        limits: Limits {
            steps: 8,
            tokens: 10_000,
            time: Duration::from_secs(600),
            repeats: 2,
            compact_at_percent: 80,
            assumed_window: 128_000,
        },
        recovery: Recovery::Continue,
        client_grace: Duration::from_secs(30),
        subagents: SubagentLimits::default(),
        tools: vec![
            tool("look", ToolKind::Read, Placement::Daemon),
            tool("edit", ToolKind::Write, Placement::Daemon),
            tool("shell", ToolKind::Exec, Placement::Daemon),
            tool("fetch", ToolKind::Network, Placement::Daemon),
            tool("verify", ToolKind::Exec, Placement::Daemon),
            tool("desk", ToolKind::Read, Placement::Client),
            tool("pen", ToolKind::Write, Placement::Client),
        ],
        default_model: ModelRef::parse("fake/a").unwrap(),
    }
}

pub(super) fn tool(name: &str, kind: ToolKind, placement: Placement) -> Arc<ToolSpec> {
    let (name, description, schema) = (name.into(), String::new(), json!({}));
    Arc::new(ToolSpec { name, description, schema, kind, placement, strict: false })
}

/// The profiles of each provider's models.
pub(super) fn profiles() -> HashMap<String, Profile> {
    let search = SearchSupport::Never;
    let (inputs, window) = (vec![MediaKind::Image], Some(1000));
    let fake = Profile { inputs, tools: true, context_window: window, search };
    let plain = Profile { inputs: Vec::new(), tools: false, context_window: None, search };
    let blind = Profile { tools: true, ..plain.clone() };
    HashMap::from([("fake".into(), fake), ("plain".into(), plain), ("blind".into(), blind)])
}

/// Applies one `word` or `word=value` of a `rules` line.
pub(super) fn change(rules: &mut Rules, word: &str) {
    let (word, value) = word.split_once('=').unwrap_or((word, ""));
    let number = || value.parse::<u64>().unwrap();
    match word {
        "ask" => match ToolKind::ALL.into_iter().find(|kind| kind.name() == value) {
            Some(kind) => rules.approval.kinds.push(kind),
            None => rules.approval.tools.push(value.into()),
        },
        "on_deny" if value == "fail" => rules.approval.on_deny = OnDeny::Fail,
        "expires" => rules.approval.expires = Some(Duration::from_secs(number())),
        "allow" | "ask_for" | "refuse" => rules.approval.rules.push(rule(word, value)),
        "review" => {
            rules.review = match value {
                "request" => ReviewMode::Request,
                "auto" => ReviewMode::Auto,
                _ => ReviewMode::Off,
            }
        }
        "context" => rules.context_tokens = number(),
        "jot" => rules.tools.push(tool("jot", ToolKind::Memory, Placement::Daemon)),
        "save_memory" => rules.save_memory = true,
        "verify" => rules.verify.auto = true,
        "attempts" => rules.verify.attempts = number() as u32,
        "steps" => rules.limits.steps = number() as u32,
        "tokens" => rules.limits.tokens = number(),
        "forever" => rules.limits.time = Duration::MAX,
        "recovery" => {
            rules.recovery = match value {
                "ask" => Recovery::Ask,
                "leave" => Recovery::Leave,
                _ => Recovery::Continue,
            }
        }
        _ => panic!("no such rule: {word}"),
    }
}

/// `refuse=path:**/.env`, `allow=command:cargo_*,tool:shell`, `ask_for=kind:read`; `_` is a blank.
fn rule(action: &str, fits: &str) -> Rule {
    let action = match action {
        "allow" => Action::Allow,
        "refuse" => Action::Refuse,
        _ => Action::Ask,
    };
    let (kind, tool, path, command, reason) = (None, None, None, None, None);
    let mut rule = Rule { kind, tool, path, command, action, reason };
    for (what, value) in fits.split(',').map(|fit| fit.split_once(':').unwrap()) {
        let value = value.replace('_', " ");
        match what {
            "kind" => rule.kind = ToolKind::ALL.into_iter().find(|kind| kind.name() == value),
            "tool" => rule.tool = Some(value),
            "path" => rule.path = Some(Pattern::path(&value)),
            "command" => rule.command = Some(Pattern::command(&value)),
            _ => rule.reason = Some(value),
        }
    }
    rule
}

#[test]
fn a_small_context_window_gets_less_workspace_context() {
    let budget = |script: &str| {
        let mut session = Session::after(script);
        let rules = Rules { context_tokens: 4_000, ..rules() };
        session.state.rules = Arc::new(rules);
        session.state.context_budget()
    };
    assert_eq!([budget("create"), budget("create on plain/b")], [125, 4_000]);
}
