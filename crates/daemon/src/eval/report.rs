//! Prints the results of an evaluation: a table, or one line of JSON per task.

use std::io::Write as _;

use anyhow::Result;
use quintet_kernel::model::ModelRef;
use serde_json::json;

use super::task::Task;
use super::trial::Trial;
use crate::cli::Set;

/// One line while other tasks still run.
pub(super) fn progress(n: usize, of: usize, task: &Task, trial: &Trial) -> String {
    let word = trial.failure.as_deref().unwrap_or("done");
    format!("{n}/{of} {} ({:.0} s): {word}", task.name, trial.seconds)
}

/// The table, or the last line of JSON.
pub(super) fn print(trials: &[(Task, Trial)], model: &ModelRef, as_json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if as_json {
        return Ok(writeln!(out, "{}", totals_json(trials, model))?);
    }
    writeln!(out, "{model}\n")?;
    writeln!(
        out,
        "| task | kind | set | done | steps | tokens read (known) | written | first s | s |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|---|")?;
    for (task, trial) in trials {
        let done = if trial.failure.is_none() { "yes" } else { "no" };
        let Trial { steps, usage, first_seconds, seconds, .. } = trial;
        writeln!(
            out,
            "| {} | {} | {} | {done} | {steps} | {} ({}) | {} | {first_seconds:.1} | {seconds:.1} |",
            task.name,
            task.kind.name(),
            set_name(task.set),
            usage.input,
            usage.cached,
            usage.output,
        )?;
    }
    writeln!(out)?;
    for set in [Set::Train, Set::Test, Set::All] {
        let (done, all) = count(trials, set);
        if all > 0 {
            let percent = 100.0 * done as f64 / all as f64;
            writeln!(out, "{}: {done} of {all} ({percent:.0} %)", set_name(set))?;
        }
    }
    Ok(())
}

/// One task as JSON.
pub(super) fn line(task: &Task, trial: &Trial, model: &ModelRef) -> serde_json::Value {
    json!({
        "model": model.to_string(),
        "task": task.name,
        "kind": task.kind.name(),
        "set": set_name(task.set),
        "done": trial.failure.is_none(),
        "failure": trial.failure,
        "steps": trial.steps,
        "input_tokens": trial.usage.input,
        "cached_tokens": trial.usage.cached,
        "output_tokens": trial.usage.output,
        "first_seconds": trial.first_seconds,
        "seconds": trial.seconds,
    })
}

fn totals_json(trials: &[(Task, Trial)], model: &ModelRef) -> serde_json::Value {
    let of = |set: Set| {
        let (done, all) = count(trials, set);
        json!({ "done": done, "of": all })
    };
    json!({
        "model": model.to_string(),
        "train": of(Set::Train),
        "test": of(Set::Test),
        "all": of(Set::All),
    })
}

/// The number of solved tasks of a set, and of all its tasks.
fn count(trials: &[(Task, Trial)], set: Set) -> (usize, usize) {
    let of_set = || trials.iter().filter(|(task, _)| set.includes(task.set));
    (of_set().filter(|(_, trial)| trial.failure.is_none()).count(), of_set().count())
}

fn set_name(set: Set) -> &'static str {
    match set {
        Set::Train => "train",
        Set::Test => "test",
        Set::All => "all",
    }
}
