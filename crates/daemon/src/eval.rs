//! `quintet eval`: tests a model on small tasks, each an ordinary session.
//!
//! [`task`] is the data, [`trial`] runs one task in its own folder, [`check`] checks the result and [`report`]
//! prints it.

mod check;
mod report;
mod task;
mod trial;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::ReviewMode;

use crate::assemble::{assemble, toolbox};
use crate::cli::{Eval, Flags, Set};
use crate::options::{self, Options};
use crate::{senses, telemetry};

use task::Task;
use trial::{Bench, Trial};

/// Maximum time for sessions to become durable at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);

pub(crate) fn main(arguments: &Eval) -> Result<()> {
    let environment = options::environment();
    let filter = environment.iter().find(|(name, _)| name == "QUINTET_LOG");
    let filter = filter.map_or("error", |(_, value)| value.as_str());
    telemetry::start(arguments.flags.log_format, Some(filter));
    let (flags, set) = sorted(&arguments.flags)?;
    let tasks = chosen(arguments, set)?;
    let home = Folder::new()?;
    let options = adjusted(options::read(&flags)?, arguments, &home.0)?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let trials = threads.block_on(run(&options, arguments, &tasks, &home.0));
    threads.shutdown_timeout(Duration::from_secs(1));
    report::print(&trials?, &options.default_model, arguments.json)
}

/// `--set` sets a configuration value everywhere; here it also selects tasks: `--set test`.
fn sorted(flags: &Flags) -> Result<(Flags, Set)> {
    let (values, words): (Vec<String>, Vec<String>) =
        flags.set.iter().cloned().partition(|given| given.contains('='));
    let mut set = Set::All;
    for word in words {
        set = Set::parse(&word)
            .with_context(|| format!("--set {word}: train, test, all or KEY=VALUE"))?;
    }
    Ok((Flags { set: values, ..flags.clone() }, set))
}

/// The selected tasks.
fn chosen(arguments: &Eval, set: Set) -> Result<Vec<Task>> {
    let all = match &arguments.tasks {
        Some(folder) => task::read(folder)?,
        None => task::bundled(),
    };
    let wanted = |task: &Task| {
        set.includes(task.set) && (arguments.task.is_empty() || arguments.task.contains(&task.name))
    };
    let tasks: Vec<Task> = all.iter().filter(|task| wanted(task)).cloned().collect();
    let known = |name: &&String| all.iter().any(|task| task.name == **name);
    if let Some(unknown) = arguments.task.iter().find(|name| !known(name)) {
        let names: Vec<&str> = all.iter().map(|task| task.name.as_str()).collect();
        bail!("there is no task {unknown:?}; there are {}", names.join(", "));
    }
    if tasks.is_empty() {
        bail!("no task is left of that set");
    }
    Ok(tasks)
}

/// The configured options, without anything that differs between machines or touches the user's data: everything
/// is allowed, memory is off, and all data goes to a temporary folder.
fn adjusted(mut options: Options, arguments: &Eval, home: &Path) -> Result<Options> {
    if let Some(model) = &arguments.model {
        let parsed = ModelRef::parse(model);
        options.default_model =
            parsed.with_context(|| format!("{model:?} is not provider/model"))?;
    }
    options.data_dir = home.join("data");
    options.runtime_dir = None;
    options.approval.rules.clear();
    options.approval.kinds.clear();
    options.approval.tools.clear();
    options.review = ReviewMode::Off;
    options.memory = None;
    options.mcp.servers.clear();
    options.limits.time = options.limits.time.min(Duration::from_secs(arguments.seconds));
    Ok(options)
}

async fn run(
    options: &Options,
    arguments: &Eval,
    tasks: &[Task],
    home: &Path,
) -> Result<Vec<(Task, Trial)>> {
    let tools = toolbox(options, &senses::build(options), None);
    let shell = tools.get("shell").context("the tool `shell` is missing")?;
    let assembly = assemble(options)?;
    let bench = Bench { sessions: &assembly.runtime, shell, model: &options.default_model };
    let mut trials = Vec::new();
    for (n, task) in tasks.iter().enumerate() {
        let folder = home.join("workspaces").join(&task.name);
        let trial = bench.attempt(task, &folder).await?;
        // Printed as soon as it is known, so that an interrupted run keeps its results.
        if arguments.json {
            writeln!(std::io::stdout(), "{}", report::line(task, &trial, &options.default_model))?;
        } else {
            writeln!(std::io::stderr(), "{}", report::progress(n + 1, tasks.len(), task, &trial))?;
        }
        if arguments.transcript {
            write!(std::io::stderr(), "{}", trial.transcript)?;
        }
        trials.push((task.clone(), trial));
    }
    assembly.runtime.close(CLOSE_TIMEOUT).await;
    if let Some(local) = assembly.local {
        tokio::task::spawn_blocking(move || local.close()).await?;
    }
    Ok(trials)
}

/// A folder below the temporary directory that is deleted with its content.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("quintet-eval-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(Self(path.canonicalize()?))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
