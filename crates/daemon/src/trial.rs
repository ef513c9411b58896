//! `quintet try`: calls a tool as a session would, without a model or a session.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use quintet_kernel::message::text_of;
use quintet_kernel::port::{
    BoxFuture, CancelSignal, Clock as _, Invocation, NobodyToAsk, ToolContext, ToolOutput,
    ToolProgress,
};
use quintet_kernel::tool::Assessment;
use quintet_kernel::{CallId, SessionId, TurnId};
use quintet_runtime::SystemClock;
use serde_json::{Value, json};

use crate::assemble::toolbox;
use crate::cli::{Flags, Trial};
use crate::options;
use crate::senses;

/// Assesses the call or runs it, and prints the result.
pub(crate) fn main(flags: &Flags, trial: &Trial) -> Result<()> {
    let options = options::read(flags)?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let toolbox = toolbox(&options, &senses::build(&options), None);
    let Some(tool) = toolbox.get(&trial.tool) else {
        bail!("there is no tool {:?}; `quintet tools` lists them", trial.tool);
    };
    let call = invocation(trial)?;
    threads.block_on(async {
        if trial.assess {
            return print(&assessment(&tool.assess(&call).await));
        }
        for _ in 0..trial.times.max(1) {
            let (began, voice) = (SystemClock.now(), Arc::new(StderrProgress));
            let context = ToolContext {
                progress: voice.clone(),
                cancel: voice,
                questions: Arc::new(NobodyToAsk),
            };
            let output = tool.run(call.clone(), context).await;
            print(&outcome(&output, SystemClock.now().since(began)))?;
        }
        toolbox.workspaces().turn_ended(&call.turn);
        Ok(())
    })
}

fn invocation(trial: &Trial) -> Result<Invocation> {
    let input: Value = serde_json::from_str(&trial.input)
        .with_context(|| format!("the arguments are not JSON: {}", trial.input))?;
    let workspace = match &trial.workspace {
        Some(folder) => folder.clone(),
        None => PathBuf::from("."),
    };
    let workspace =
        workspace.canonicalize().with_context(|| format!("workspace {}", workspace.display()))?;
    // Concurrent runs may use the same data.
    let turn = TurnId::parse(&format!("turn_{}", std::process::id()));
    let call = CallId::parse("call_1");
    let call = call.context("a name")?;
    let session = SessionId::parse("sess_1").context("a name")?;
    let pictures = Vec::new();
    Ok(Invocation { session, call, turn: turn.context("a name")?, workspace, input, pictures })
}

fn assessment(assessment: &Assessment) -> Value {
    json!({
        "risk": assessment.risk.name(),
        "reasons": assessment.reasons,
        "reversible": assessment.reversible,
        "preview": assessment.preview,
        "paths": assessment.subject.paths,
        "commands": assessment.subject.commands,
        "opaque": assessment.subject.opaque,
        "similar": assessment.subject.similar,
        "settled": assessment.settled.as_ref().map(|outcome| text_of(&outcome.parts)),
    })
}

fn outcome(output: &ToolOutput, took: Duration) -> Value {
    json!({
        "ok": output.outcome.ok(),
        "error": output.outcome.error,
        "output": text_of(&output.outcome.parts),
        "files": output.files.iter().map(|file| &file.name).collect::<Vec<_>>(),
        "changes": output.changes.iter().map(|change| &change.path).collect::<Vec<_>>(),
        "ms": took.as_secs_f64() * 1000.0,
    })
}

fn print(value: &Value) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    Ok(writeln!(stdout, "{value}")?)
}

/// Prints a tool's progress on standard error; the call is never cancelled.
struct StderrProgress;

impl ToolProgress for StderrProgress {
    fn report(&self, text: &str) {
        let _nobody_listens = std::io::stderr().write_all(text.as_bytes());
    }
}

impl CancelSignal for StderrProgress {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
