//! The rules that scripts start from, and the words that change them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::message::MediaKind;
use crate::model::{ModelRef, Profile};
use crate::policy::{Approval, Limits, OnDeny, Recovery, Rules, Verify};
use crate::tool::{Kind, Placement, Spec};

/// Nothing needs approval, nothing is verified, and `fake/a` takes pictures and 1000 tokens.
pub(super) fn rules() -> Rules {
    let tool = |name: &str, kind, placement| {
        let (name, description, schema) = (name.into(), String::new(), json!({}));
        Arc::new(Spec { name, description, schema, kind, placement })
    };
    Rules {
        approval: Approval {
            kinds: Vec::new(),
            tools: Vec::new(),
            on_deny: OnDeny::Continue,
            expires: None,
        },
        verify: Verify { auto: false, tool: "verify".into(), attempts: 2 },
        limits: Limits {
            steps: 8,
            tokens: 10_000,
            time: Duration::from_secs(600),
            repeats: 2,
            compact_at_percent: 80,
        },
        recovery: Recovery::Continue,
        tools: vec![
            tool("look", Kind::Read, Placement::Daemon),
            tool("edit", Kind::Write, Placement::Daemon),
            tool("shell", Kind::Exec, Placement::Daemon),
            tool("fetch", Kind::Network, Placement::Daemon),
            tool("verify", Kind::Exec, Placement::Daemon),
            tool("desk", Kind::Read, Placement::Client),
            tool("pen", Kind::Write, Placement::Client),
        ],
        default_model: ModelRef::parse("fake/a").unwrap(),
        models: Arc::new(profiles()),
    }
}

/// What the models of each provider can do.
pub(super) fn profiles() -> HashMap<String, Profile> {
    let fake = Profile { inputs: vec![MediaKind::Image], tools: true, context_window: Some(1000) };
    let plain = Profile { inputs: Vec::new(), tools: false, context_window: None };
    HashMap::from([("fake".into(), fake), ("plain".into(), plain)])
}

/// Takes one `word` or `word=value` of a `rules` line.
pub(super) fn change(rules: &mut Rules, word: &str) {
    let (word, value) = word.split_once('=').unwrap_or((word, ""));
    let number = || value.parse::<u64>().unwrap();
    match word {
        "ask" => match Kind::ALL.into_iter().find(|kind| kind.name() == value) {
            Some(kind) => rules.approval.kinds.push(kind),
            None => rules.approval.tools.push(value.into()),
        },
        "on_deny" if value == "fail" => rules.approval.on_deny = OnDeny::Fail,
        "expires" => rules.approval.expires = Some(Duration::from_secs(number())),
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
