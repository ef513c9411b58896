//! The approval policy and the review of changes.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use quintet_kernel::policy::{Action, ApprovalPolicy, OnDeny, Pattern, ReviewMode, Rule};
use quintet_kernel::tool::ToolKind;

use super::choice;
use crate::options::layers::Layers;

pub(super) fn approval(layers: &Layers) -> Result<ApprovalPolicy> {
    let kinds = layers.list("approval.kinds").unwrap_or_default();
    Ok(ApprovalPolicy {
        rules: layers
            .names("rules")
            .iter()
            .map(|name| rule(layers, name))
            .collect::<Result<_>>()?,
        kinds: kinds.iter().map(|word| kind("approval.kinds", word)).collect::<Result<_>>()?,
        tools: layers.list("approval.tools").unwrap_or_default(),
        on_deny: choice(
            layers,
            "approval.on_deny",
            &[("continue", OnDeny::Continue), ("fail", OnDeny::Fail)],
        )?,
        expires: layers.number("approval.expires_seconds").map(Duration::from_secs),
    })
}

pub(super) fn review(layers: &Layers) -> Result<ReviewMode> {
    let words =
        [("off", ReviewMode::Off), ("request", ReviewMode::Request), ("auto", ReviewMode::Auto)];
    choice(layers, "patch_review.mode", &words)
}

/// One `[rules.NAME]`.
fn rule(layers: &Layers, name: &str) -> Result<Rule> {
    let path = |field: &str| format!("rules.{name}.{field}");
    let text = |field: &str| layers.str(&path(field)).filter(|text| !text.is_empty());
    if text("action").is_none() {
        bail!("{} is not set; it is \"allow\", \"ask\" or \"refuse\"", path("action"));
    }
    let actions = [("allow", Action::Allow), ("ask", Action::Ask), ("refuse", Action::Refuse)];
    let rule = Rule {
        kind: text("kind").map(|word| kind(&path("kind"), word)).transpose()?,
        tool: text("tool").map(Into::into),
        path: text("path").map(Pattern::path),
        command: text("command").map(Pattern::command),
        action: choice(layers, &path("action"), &actions)?,
        reason: text("reason").map(Into::into),
    };
    if rule.kind.is_none() && rule.tool.is_none() && rule.path.is_none() && rule.command.is_none() {
        bail!("rules.{name} fits every call; give it a kind, tool, path or command");
    }
    Ok(rule)
}

fn kind(path: &str, word: &str) -> Result<ToolKind> {
    let kind = ToolKind::ALL.into_iter().find(|kind| kind.name() == word);
    kind.with_context(|| {
        format!(
            "{path}: there is no kind {word:?}; there are read, write, exec, network and memory"
        )
    })
}
