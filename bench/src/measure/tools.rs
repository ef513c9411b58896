//! Tools on a large tree, compared with common programs, and the cost of the sandbox.
//!
//! Calls are made by `quintet try`, which reports their duration; the first one of a process has
//! empty caches. They are compared with whole processes, as people would start them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::process::Command;

use super::Plan;
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

const HUNKS: usize = 1000;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    match large_tree() {
        Some(tree) => {
            rows.push(search(rig, plan, &tree).await?);
            rows.extend(map(rig, plan, &tree).await?);
        }
        None => {
            rows.push(Row::new("search, repo_map").note("there is no cargo registry to look at"))
        }
    }
    rows.push(sandbox(rig, plan).await?);
    rows.push(patch(rig, plan).await?);
    Ok(rows)
}

/// The sources of all crates that cargo has downloaded here.
fn large_tree() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let sources = home.join("registry/src").read_dir().ok()?;
    sources.filter_map(|entry| Some(entry.ok()?.path())).find(|path| path.is_dir())
}

async fn search(rig: &Rig, plan: &Plan, tree: &Path) -> Result<Row> {
    let input = json!({ "query": r"unsafe impl.*\bfor\b", "regex": true, "max_results": 1000 });
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds(7, 3) {
        ours.extend(tried(rig, tree, "search", &input, 1).await?);
        theirs.extend(
            timed(tree, "rg", &["-n", "--no-messages", r"unsafe impl.*\bfor\b", "."]).await,
        );
    }
    let row = Row::new("search of a large tree, ms").quintet(median(&ours));
    Ok(held_against(row, "rg", &theirs))
}

async fn map(rig: &Rig, plan: &Plan, tree: &Path) -> Result<Vec<Row>> {
    let (mut cold, mut warm, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..plan.rounds(3, 1) {
        let took = tried(rig, tree, "repo_map", &json!({}), 2).await?;
        cold.extend(took.first());
        warm.extend(took.last());
        let arguments =
            ["-R", "-f", "/dev/null", "--languages=Rust,C,C++,Python,JavaScript,Go,Java", "."];
        theirs.extend(timed(tree, "ctags", &arguments).await);
    }
    let row = Row::new("repo_map of a large tree, cold, ms").quintet(median(&cold));
    Ok(vec![
        held_against(row, "ctags", &theirs),
        Row::new("repo_map of the same tree again, ms").quintet(median(&warm)),
    ])
}

async fn sandbox(rig: &Rig, plan: &Plan) -> Result<Row> {
    let (workspace, input) = (rig.workspace(), json!({ "command": "true" }));
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds(5, 2) {
        with.extend(tried(rig, &workspace, "shell", &input, 20).await?);
        let off = ["--set", "sandbox.mode=off"];
        without.extend(tried_with(rig, &workspace, ("shell", &input), 20, &off).await?);
    }
    let row = Row::new("`true` by shell, ms").proxy(median(&without)).quintet(median(&with));
    Ok(row.note("with a sandbox, against without"))
}

async fn patch(rig: &Rig, plan: &Plan) -> Result<Row> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds(5, 2) {
        let folder = tempfile::tempdir_in(rig.workspace())?;
        let file = folder.path().join("long.txt");
        let before: String = (0..HUNKS * 10).fold(String::new(), |mut text, n| {
            let _ = writeln!(text, "line {n}");
            text
        });
        std::fs::write(&file, &before)?;
        let patch = hunks();
        ours.extend(tried(rig, folder.path(), "apply_patch", &json!({ "patch": patch }), 1).await?);
        let after = std::fs::read_to_string(&file)?;
        if after.lines().filter(|line| line.starts_with("new")).count() != HUNKS {
            bail!("the patch did not do what it should");
        }
        std::fs::write(&file, &before)?;
        std::fs::write(folder.path().join("long.patch"), &patch)?;
        theirs.extend(timed(folder.path(), "git", &["apply", "long.patch"]).await);
    }
    let row = Row::new("apply_patch with 1,000 hunks, ms").quintet(median(&ours));
    Ok(held_against(row, "git apply", &theirs))
}

/// A patch that changes every tenth line.
fn hunks() -> String {
    let mut patch = String::from("--- a/long.txt\n+++ b/long.txt\n");
    for n in 0..HUNKS {
        let at = n * 10 + 4;
        let _ = write!(
            patch,
            "@@ -{0},3 +{0},3 @@\n line {1}\n-line {2}\n+new {2}\n line {3}\n",
            at + 1,
            at,
            at + 1,
            at + 2
        );
    }
    patch
}

fn held_against(row: Row, rival: &str, samples: &[f64]) -> Row {
    if samples.is_empty() {
        row.note(format!("{rival} is not installed"))
    } else {
        row.proxy(median(samples)).note(format!("against {rival}"))
    }
}

async fn tried(
    rig: &Rig,
    workspace: &Path,
    tool: &str,
    input: &Value,
    times: u32,
) -> Result<Vec<f64>> {
    tried_with(rig, workspace, (tool, input), times, &[]).await
}

/// The duration of each call of a tool in one process, in milliseconds.
pub(super) async fn tried_with(
    rig: &Rig,
    workspace: &Path,
    (tool, input): (&str, &Value),
    times: u32,
    flags: &[&str],
) -> Result<Vec<f64>> {
    let output = Command::new(rig.quintet())
        .args(["try", tool, &input.to_string(), "--times", &times.to_string(), "--workspace"])
        .arg(workspace)
        .args(flags)
        .stderr(Stdio::null())
        .output()
        .await?;
    let mut took = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let told: Value = serde_json::from_str(line)?;
        if told["ok"] != true {
            bail!("{tool} did not work: {}", told["error"]);
        }
        took.push(told["ms"].as_f64().context("no time")?);
    }
    if took.len() == times as usize {
        Ok(took)
    } else {
        bail!("{tool} was not run: {}", String::from_utf8_lossy(&output.stdout))
    }
}

/// The duration of a program, in milliseconds; `None` if it does not exist or fails.
pub(super) async fn timed(folder: &Path, program: &str, arguments: &[&str]) -> Option<f64> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().await.ok()?;
    let took = began.elapsed().as_secs_f64() * 1000.0;
    status.success().then_some(took)
}
