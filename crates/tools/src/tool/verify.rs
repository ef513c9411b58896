//! `verify`: the configured checks of the workspace.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::tool::{Assessment, Ending, Kind, Outcome, Placement, Spec};
use serde_json::json;

use crate::run::{Error, Job, Log, Runner, TIMEOUT, output};
use crate::{makefile, risk};

const NONE_GIVEN: &str = "no verification command applies: none is configured";

/// The tool.
pub(crate) struct Verify {
    spec: Arc<Spec>,
    runner: Arc<Runner>,
    commands: Vec<String>,
}

impl Verify {
    pub(crate) fn new(runner: Arc<Runner>, commands: Vec<String>) -> Self {
        Self { spec: Arc::new(spec()), runner, commands }
    }

    /// The commands to run here, or why there are none.
    async fn applicable(&self, workspace: &Path) -> Result<Vec<String>, String> {
        let (mut commands, mut left_out) = (Vec::new(), Vec::new());
        for command in &self.commands {
            match makefile::target(command) {
                Some(target) if !has(workspace, target).await => left_out.push(target),
                _ => commands.push(command.clone()),
            }
        }
        match (commands.is_empty(), &left_out[..]) {
            (false, _) => Ok(commands),
            (true, []) => Err(NONE_GIVEN.to_owned()),
            (true, targets) => Err(format!(
                "no verification command applies: the workspace has no Makefile with a {} target",
                targets.join(" or ")
            )),
        }
    }

    /// Runs the commands until one does not succeed.
    async fn run_all(
        &self,
        commands: &[String],
        workspace: &Path,
        desk: &Desk,
    ) -> Result<Output, Error> {
        let (mut reports, mut log) = (Vec::new(), Log::default());
        let mut ending = Ending::Succeeded;
        for command in commands {
            desk.progress.say(&format!("$ {command}\n"));
            let job = Job { command, workspace, timeout: TIMEOUT };
            let finished = self.runner.run(job, desk).await?;
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
            Ending::Failed | Ending::Denied | Ending::Skipped | Ending::Interrupted => {
                Some("verification failed".to_owned())
            }
        };
        Ok(output(ending, &reports, error, vec![log.file("verify.log")]))
    }
}

async fn has(workspace: &Path, target: &str) -> bool {
    let (workspace, target) = (workspace.to_owned(), target.to_owned());
    let looking = tokio::task::spawn_blocking(move || makefile::has(&workspace, &target));
    looking.await.unwrap_or(false)
}

fn spec() -> Spec {
    Spec {
        name: "verify".to_owned(),
        description: "Run the checks that are configured for the workspace, such as its tests, \
                      and stop at the first that fails."
            .to_owned(),
        schema: json!({ "type": "object", "properties": {} }),
        kind: Kind::Exec,
        placement: Placement::Daemon,
    }
}

impl Tool for Verify {
    fn spec(&self) -> Arc<Spec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            match self.applicable(&call.workspace).await {
                Ok(commands) => risk::assess(&call.workspace, &commands),
                Err(why) => super::settled(Outcome::idle(why)),
            }
        })
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
        Box::pin(async move {
            match self.applicable(&call.workspace).await {
                Ok(commands) => self
                    .run_all(&commands, &call.workspace, &desk)
                    .await
                    .unwrap_or_else(|error| Outcome::failure(error.to_string()).into()),
                Err(why) => Outcome::idle(why).into(),
            }
        })
    }
}
