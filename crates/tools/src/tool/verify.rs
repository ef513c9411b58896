//! `verify`: the checks that the workspace's `AGENTS.md` names, or those that are configured.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::id::CallId;
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Placement, ToolKind, ToolSpec};
use serde_json::json;

use crate::run::{Job, Log, RunError, Runner, TIMEOUT, output};
use crate::{agents, makefile, risk};

const NONE_GIVEN: &str = "no verification command applies: none is configured";
const CHANGED: &str =
    "the verification commands are not those that were shown any more; verify again";
/// For how many calls it is remembered what was shown.
const SHOWN_LIMIT: usize = 64;

/// The tool.
pub(crate) struct Verify {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
    configured: Vec<String>,
    /// The commands that were shown for approval, by call. An earlier call may change the files that name the
    /// commands, and the new ones would not be approved.
    shown: Mutex<VecDeque<(CallId, Vec<String>)>>,
}

impl Verify {
    pub(crate) fn new(runner: Arc<Runner>, configured: Vec<String>) -> Self {
        Self { spec: Arc::new(spec()), runner, configured, shown: Mutex::default() }
    }

    /// The commands to run here, or why there are none.
    async fn applicable(&self, workspace: &Path) -> Result<Vec<String>, String> {
        let (workspace, configured) = (workspace.to_owned(), self.configured.clone());
        let looking = tokio::task::spawn_blocking(move || applicable(&workspace, configured));
        looking.await.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn show(&self, call: &CallId, commands: &[String]) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|(other, _)| other != call);
        shown.push_back((call.clone(), commands.to_vec()));
        if shown.len() > SHOWN_LIMIT {
            shown.pop_front();
        }
    }

    /// Whether a call runs what was shown of it, if anything was.
    fn is_as_shown(&self, call: &CallId, commands: &[String]) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let at = shown.iter().position(|(other, _)| other == call);
        at.and_then(|at| shown.remove(at)).is_none_or(|(_, seen)| seen == commands)
    }

    /// Runs the commands until one does not succeed.
    async fn run_all(
        &self,
        commands: &[String],
        call: &Invocation,
        context: &ToolContext,
    ) -> Result<ToolOutput, RunError> {
        let (mut reports, mut log) = (Vec::new(), Log::default());
        let mut ending = Ending::Succeeded;
        for command in commands {
            context.progress.report(&format!("$ {command}\n"));
            let job = Job { command, workspace: &call.workspace, timeout: TIMEOUT };
            let finished = self.runner.run(job, context).await?;
            reports.push(finished.report());
            log.add(&finished);
            ending = finished.ending();
            if ending != Ending::Succeeded {
                break;
            }
        }
        let error = match ending {
            Ending::Succeeded | Ending::Idle => None,
            Ending::Cancelled => Some("cancelled".to_owned()),
            Ending::Failed
            | Ending::Denied
            | Ending::Skipped
            | Ending::Interrupted
            | Ending::TimedOut => Some("verification failed".to_owned()),
        };
        Ok(output(ending, &reports, error, vec![log.file("verify.log")]))
    }
}

fn applicable(workspace: &Path, configured: Vec<String>) -> Result<Vec<String>, String> {
    let notices = agents::around(workspace);
    let named = notices.iter().rev().map(|notice| (notice, agents::verify_commands(&notice.text)));
    match named.into_iter().find(|(_, commands)| !commands.is_empty()) {
        // Commands in the workspace's own file are used unchanged.
        Some((notice, commands)) if notice.scope == Path::new(".") => Ok(commands),
        Some((_, commands)) => makeable(workspace, commands),
        None => makeable(workspace, configured),
    }
}

/// Without those that would make what cannot be made here.
fn makeable(workspace: &Path, commands: Vec<String>) -> Result<Vec<String>, String> {
    let is_missing = |command: &String| {
        makefile::target(command).is_some_and(|target| !makefile::has(workspace, target))
    };
    let (left_out, commands): (Vec<_>, Vec<_>) = commands.into_iter().partition(is_missing);
    let targets: Vec<_> = left_out.iter().filter_map(|command| makefile::target(command)).collect();
    match (commands.is_empty(), &targets[..]) {
        (false, _) => Ok(commands),
        (true, []) => Err(NONE_GIVEN.to_owned()),
        (true, targets) => Err(format!(
            "no verification command applies: the workspace has no Makefile with a {} target",
            targets.join(" or ")
        )),
    }
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: "verify".to_owned(),
        description: "Run the checks that the workspace's AGENTS.md names or that are configured \
                      for it, such as its tests, and stop at the first that fails."
            .to_owned(),
        schema: json!({ "type": "object", "properties": {} }),
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    }
}

impl Tool for Verify {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            match self.applicable(&call.workspace).await {
                Ok(commands) => {
                    self.show(&call.call, &commands);
                    risk::assess(&call.workspace, &commands)
                }
                Err(why) => super::settled(Outcome::idle(why)),
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match self.applicable(&call.workspace).await {
                Ok(commands) if !self.is_as_shown(&call.call, &commands) => {
                    Outcome::failure(CHANGED).into()
                }
                Ok(commands) => self
                    .run_all(&commands, &call, &context)
                    .await
                    .unwrap_or_else(|error| Outcome::failure(error.to_string()).into()),
                Err(why) => Outcome::idle(why).into(),
            }
        })
    }
}
