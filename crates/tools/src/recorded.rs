//! A tool that runs commands, with a record of what they do to files: by what the kernel says that they
//! write, or else by a look at the workspace before and after.

use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::TurnId;
use quintet_kernel::change::Gap;
use quintet_kernel::message::Part;
use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool, Traces};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Spec};

use crate::run::Runner;
use crate::snapshot::{Base, Record, Shelf, Snapshots, Unrecorded};
use crate::watch::Watches;
use crate::{blocking, show};

/// How many places are named that are not recorded.
const MOST_NAMED: usize = 5;

/// A tool whose changes are recorded, however it ends.
pub(crate) struct Recorded<T> {
    tool: T,
    recorder: Recorder,
}

/// How what commands do is recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    runner: Arc<Runner>,
    watches: Watches,
    snapshots: Arc<Snapshots>,
}

impl Recorder {
    /// Commands are run by this runner; copies lie in this folder.
    pub(crate) fn new(runner: Arc<Runner>, watches: Watches, folder: PathBuf) -> Self {
        Self { runner, watches, snapshots: Arc::new(Snapshots::new(folder)) }
    }
}

impl<T: Tool> Recorded<T> {
    pub(crate) fn new(tool: T, recorder: Recorder) -> Self {
        Self { tool, recorder }
    }

    async fn record(&self, call: Invocation, desk: Desk) -> Output {
        let Ok(shelf) = self.recorder.snapshots.shelf(&call.workspace) else {
            return self.tool.run(call, desk).await;
        };
        match self.recorder.runner.unwatched() {
            None => self.watch(shelf, call, desk).await,
            Some(why) => {
                let gap = format!("{why}, so only a look before and after shows what they did");
                with_gaps(self.survey(shelf, call, desk).await, vec![everywhere(gap)])
            }
        }
    }

    /// Records what the kernel says that a command writes.
    async fn watch(&self, shelf: Arc<Shelf>, call: Invocation, desk: Desk) -> Output {
        let (watches, begun) = (self.recorder.watches.clone(), call.clone());
        let beginning = blocking::until_cancelled(&desk, move |_| watches.begin(&begun));
        match beginning.await {
            Some(Ok(Ok(()))) => {}
            Some(trouble) => {
                let error = match trouble {
                    Ok(error) => error.err().map(|error| error.to_string()),
                    Err(error) => Some(error.to_string()),
                };
                let error = error.unwrap_or_default();
                let why =
                    Unrecorded::Workspace(format!("the cache folder cannot be used: {error}"));
                let record = nothing(&shelf, &call.turn, &why);
                return with(self.tool.run(call, desk).await, record, None);
            }
            None => return Outcome::ended(Ending::Cancelled, "cancelled").into(),
        }
        let output = self.tool.run(call.clone(), desk).await;
        let (watches, turn) = (self.recorder.watches.clone(), call.turn.clone());
        let looking = move || watches.traces(&call.workspace, &call.turn, &call.call);
        let traces = tokio::task::spawn_blocking(looking).await;
        let Traces { changes, unrecorded } = match traces {
            Ok(traces) => traces.unwrap_or_default(),
            Err(error) => {
                let unrecorded = vec![everywhere(error.to_string())];
                Traces { changes: Vec::new(), unrecorded }
            }
        };
        let news = news(&shelf, &turn, &unrecorded);
        with(output, Record { changes, gaps: unrecorded, note: None }, news)
    }

    /// Records what a look at the workspace before and after shows.
    async fn survey(&self, shelf: Arc<Shelf>, call: Invocation, desk: Desk) -> Output {
        let turn = call.turn.clone();
        let known = shelf.told(&turn).trouble.clone();
        if let Some(trouble) = known {
            return with_gaps(self.tool.run(call, desk).await, vec![everywhere(trouble)]);
        }
        let base = match self.before(shelf.clone(), &desk).await {
            Err(Unrecorded::Cancelled) => {
                return Outcome::ended(Ending::Cancelled, "cancelled").into();
            }
            base => base,
        };
        let output = self.tool.run(call, desk).await;
        let record = match base {
            Ok(base) => self.since(base).await,
            Err(why) => Err(why),
        };
        let record = record.unwrap_or_else(|why| nothing(&shelf, &turn, &why));
        let news = news(&shelf, &turn, &record.gaps);
        with(output, record, news)
    }

    async fn before(&self, shelf: Arc<Shelf>, desk: &Desk) -> Result<Base, Unrecorded> {
        let snapshots = self.recorder.snapshots.clone();
        let looking = blocking::until_cancelled(desk, move |flag| snapshots.before(shelf, flag));
        match looking.await {
            Some(Ok(base)) => base,
            Some(Err(error)) => Err(Unrecorded::Workspace(error.to_string())),
            None => Err(Unrecorded::Cancelled),
        }
    }

    /// This is not cancelled: what a cancelled command did is to be known too.
    async fn since(&self, base: Base) -> Result<Record, Unrecorded> {
        let snapshots = self.recorder.snapshots.clone();
        let looking = tokio::task::spawn_blocking(move || snapshots.since(&base));
        looking.await.unwrap_or_else(|error| Err(Unrecorded::Workspace(error.to_string())))
    }
}

/// What there is to say where nothing is recorded, which is then known in this turn.
fn nothing(shelf: &Shelf, turn: &TurnId, why: &Unrecorded) -> Record {
    let trouble = why.to_string();
    let first = shelf.told(turn).trouble.replace(trouble.clone()).is_none();
    let note = || {
        format!("what commands do to files is not recorded here and cannot be undone: {trouble}")
    };
    Record { changes: Vec::new(), note: first.then(note), gaps: vec![everywhere(trouble)] }
}

/// What comes of a call with its record, and what the model is told of that.
fn with(mut output: Output, record: Record, news: Option<String>) -> Output {
    let Record { changes, gaps, note } = record;
    output.changes.extend(changes);
    let notes = note.into_iter().chain(news);
    output.outcome.parts.extend(notes.map(|note| Part::Text(format!("\n[{note}]"))));
    with_gaps(output, gaps)
}

fn everywhere(reason: String) -> Gap {
    Gap { path: String::new(), paths: None, reason }
}

fn with_gaps(mut output: Output, gaps: Vec<Gap>) -> Output {
    output.outcome.unrecorded.extend(gaps);
    output
}

/// What the model is told of folders that are not recorded: of each once a turn.
fn news(shelf: &Shelf, turn: &TurnId, gaps: &[Gap]) -> Option<String> {
    let mut told = shelf.told(turn);
    let new = gaps.iter().filter(|gap| !gap.path.is_empty());
    let new: Vec<_> = new.filter(|gap| told.folders.insert(gap.path.clone())).collect();
    let paths = |gap: &&Gap| match gap.paths {
        Some(paths) => show::count(usize::try_from(paths).unwrap_or(usize::MAX), "path"),
        None => "what changed".to_owned(),
    };
    let one = |gap: &&Gap| format!("{} at {} ({})", paths(gap), gap.path, gap.reason);
    let list: Vec<_> = new.iter().take(MOST_NAMED).map(one).collect();
    let more = new.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and at {more} more places") } else { String::new() };
    (!list.is_empty()).then(|| format!("not recorded for an undo: {}{more}", list.join(", ")))
}

impl<T: Tool> Tool for Recorded<T> {
    fn spec(&self) -> Arc<Spec> {
        self.tool.spec()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        self.tool.assess(call)
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
        Box::pin(self.record(call, desk))
    }
}
