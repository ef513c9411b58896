//! What a session does, told as stories: given these commands, when those come, then these events.
//!
//! [`check`] is the only way in. The words of a script are in [`script`], the words for events and
//! effects in [`render`]; both call turns `t1`, steps `s1`, messages `m1`, questions `q1` and calls that
//! the kernel names itself `k1`, in the order in which they come up. `UPDATE_EXPECT=1` writes what happens below
//! each story.

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

/// Plays `given > when`; tells what `when` leads to and, behind an arrow, what is to be done then.
#[track_caller]
fn check(stories: Expect) {
    tell(stories, |line| {
        let (given, when) = line.split_once('>').unwrap_or((line, ""));
        play(given, when)
    });
}

/// Lines that are not indented are `let name = script`, or a story that may begin with such a name;
/// what it leads to stands indented below it.
#[track_caller]
pub(crate) fn tell(stories: Expect, play: impl Fn(&str) -> Vec<String>) {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let lines: Vec<&str> = stories.data().lines().filter(|line| !line.trim().is_empty()).collect();
    let mut scripts = Vec::new();
    let mut told = String::new();
    for line in lines.iter().filter(|line| indent(line) == indent(lines[0])) {
        let line = line.trim();
        told.push_str(&format!("{line}\n"));
        match line.strip_prefix("let ").and_then(|line| line.split_once(" = ")) {
            Some(named) => scripts.push(named),
            None => {
                let outcome = play(&spell_out(line, &scripts));
                told.extend(outcome.iter().map(|line| format!("    {}\n", line.trim_end())));
            }
        }
    }
    stories.assert_eq(&told);
}

fn spell_out(line: &str, scripts: &[(&str, &str)]) -> String {
    let named = |(name, script): &(&str, &str)| {
        let rest = line.strip_prefix(name)?;
        let whole = rest.is_empty() || rest.starts_with([';', ' ']);
        whole.then(|| format!("{script}{rest}"))
    };
    scripts.iter().rev().find_map(named).unwrap_or_else(|| line.into())
}

/// Plays `given`, which must go well, and tells what `when` leads to.
fn play(given: &str, when: &str) -> Vec<String> {
    let mut session = Session::after(given);
    session.told.clear();
    for line in lines(when) {
        if let Err(refusal) = session.play(line) {
            session.told.push(format!("refused: {refusal}"));
        }
    }
    session.check_replay();
    let effects = session.effects();
    let mut told = session.told;
    if told.is_empty() {
        told.push("(nothing)".into());
    }
    if !effects.is_empty() {
        told.push(format!("-> {}", effects.join(", ")));
    }
    told
}

fn lines(script: &str) -> impl Iterator<Item = &str> {
    script.split(';').map(str::trim).filter(|line| !line.is_empty())
}
