//! Tests of sessions as stories: given these commands, when those are sent, then these events
//! follow.
//!
//! [`check`] is the only entry point. The commands of a script are in [`script`], the text form of
//! events and effects in [`render`]; both name turns `t1`, steps `s1`, messages `m1`, questions
//! `q1` and calls with generated ids `k1`, in the order in which they first occur.
//! `UPDATE_EXPECT=1` writes the results below each story.

mod approval;
mod call_decision;
mod calls;
mod client_tools;
mod compaction;
mod context;
mod dynamic_tools;
mod import_messages;
mod limits;
mod messages;
mod options;
mod questions;
mod recovery;
mod render;
mod rules;
pub(crate) mod scale;
mod script;
mod stopping;
mod subagents;
mod undo;
mod verify;

use expect_test::Expect;

pub(crate) use rules::rules as plain_rules;
pub(crate) use script::Session;

/// Runs `given > when`; shows what `when` leads to and, after an arrow, the resulting effects.
#[track_caller]
fn check(stories: Expect) {
    check_stories(stories, |line| {
        let (given, when) = line.split_once('>').unwrap_or((line, ""));
        play(given, when)
    });
}

/// Unindented lines are `let name = script`, or a story that may begin with such a name; its result
/// is indented below it.
#[track_caller]
pub(crate) fn check_stories(stories: Expect, play: impl Fn(&str) -> Vec<String>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = stories.data().lines().filter(|line| !line.trim().is_empty()).collect();
    let mut scripts = Vec::new();
    let mut log = String::new();
    for line in lines.iter().filter(|line| indent(line) == indent(lines[0])) {
        let line = line.trim();
        log.push_str(&format!("{line}\n"));
        match line.strip_prefix("let ").and_then(|line| line.split_once(" = ")) {
            Some(named) => scripts.push(named),
            None => {
                let outcome = play(&expand_names(line, &scripts));
                log.extend(outcome.iter().map(|line| format!("    {}\n", line.trim_end())));
            }
        }
    }
    stories.assert_eq(&log);
}

fn expand_names(line: &str, scripts: &[(&str, &str)]) -> String {
    let named = |(name, script): &(&str, &str)| {
        let rest = line.strip_prefix(name)?;
        let whole = rest.is_empty() || rest.starts_with([';', ' ']);
        whole.then(|| format!("{script}{rest}"))
    };
    scripts.iter().rev().find_map(named).unwrap_or_else(|| line.into())
}

/// Runs `given`, which must be accepted, and shows what `when` leads to.
fn play(given: &str, when: &str) -> Vec<String> {
    let mut session = Session::after(given);
    session.log.clear();
    for line in lines(when) {
        if let Err(refusal) = session.play(line) {
            session.log.push(format!("refused: {refusal}"));
        }
    }
    session.check_replay();
    let effects = session.effects();
    let mut log = session.log;
    if log.is_empty() {
        log.push("(nothing)".into());
    }
    if !effects.is_empty() {
        log.push(format!("-> {}", effects.join(", ")));
    }
    log
}

fn lines(script: &str) -> impl Iterator<Item = &str> {
    script.split(';').map(str::trim).filter(|line| !line.is_empty())
}
