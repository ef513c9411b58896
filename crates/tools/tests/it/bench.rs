//! A workspace, a toolbox and a context to run calls with.

use std::fs::{File, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use quintet_kernel::change::FileKind;
use quintet_kernel::message::{CallArtifact, text_of};
use quintet_kernel::port::{
    BlobBody, Blobs, BoxFuture, CancelSignal, ChangedFile, FileContent, FileRange,
    InterruptedChanges, Invocation, NobodyToAsk, Ocr, RevertMode, ToolContext, ToolOutput,
    ToolProgress,
};
use quintet_kernel::tool::Assessment;
use quintet_kernel::{CallId, SessionId, TurnId};
use quintet_memory::MarkdownMemory;
use quintet_testkit::clock::FakeClock;
use quintet_tools::sandbox::{Mode, Sandbox, try_namespaces};
use quintet_tools::{FetchPolicy, MemorySettings, SearchEngine, Settings, Toolbox};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// How long a condition may take to come true before a test fails.
const CONDITION_TIMEOUT: Duration = Duration::from_secs(120);

/// The stand-in for the daemon's executable.
pub(crate) const SUPERVISOR: &str = env!("CARGO_BIN_EXE_quintet-supervise");

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    cache: TempDir,
    toolbox: Toolbox,
    heard: Arc<Heard>,
    cancel: watch::Sender<bool>,
    calls: AtomicUsize,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::verifying(&["make test"])
    }

    pub(crate) fn verifying(verify: &[&str]) -> Self {
        let verify = verify.iter().map(ToString::to_string).collect();
        Self::with(verify, sandbox(), None)
    }

    pub(crate) fn without_cache() -> Self {
        let bench = Self::new();
        std::fs::write(bench.cache.path().join("snapshots"), "").unwrap();
        bench
    }

    pub(crate) fn in_sandbox(sandbox: Sandbox) -> Self {
        Self::with(Vec::new(), sandbox, None)
    }

    /// A sandbox of Landlock and seccomp alone, as where the kernel allows no namespaces.
    pub(crate) fn without_namespaces() -> Self {
        let mut bench = Self::new();
        let supervisor = bench.cache.path().join("supervisor");
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in *' --namespaces '*) exit 1;; esac\nexec {SUPERVISOR} \"$@\"\n"
        );
        std::fs::write(&supervisor, script).unwrap();
        std::fs::set_permissions(&supervisor, Permissions::from_mode(0o700)).unwrap();
        bench.toolbox = Toolbox::new(Settings { supervisor, ..settings(bench.cache.path()) });
        bench
    }

    /// May ask these servers too, although they are on this machine.
    pub(crate) fn fetching(private: &[String]) -> Self {
        let reach = FetchPolicy::new(private).unwrap();
        Self::with(Vec::new(), sandbox(), Some(reach))
    }

    /// Searches with this.
    pub(crate) fn searching(engine: SearchEngine) -> Self {
        let mut bench = Self::new();
        let settings = Settings { search: Some(engine), ..settings(bench.cache.path()) };
        bench.toolbox = Toolbox::new(settings);
        bench
    }

    /// Reads pictures with this.
    pub(crate) fn looking(ocr: Arc<dyn Ocr>, blobs: Option<Arc<dyn Blobs>>) -> Self {
        let mut bench = Self::new();
        let settings = Settings { ocr: Some(ocr), blobs, ..settings(bench.cache.path()) };
        bench.toolbox = Toolbox::new(settings);
        bench
    }

    /// Remembers, and tells models of it in so many tokens, of a thousand more.
    pub(crate) fn remembering(tokens: u64) -> Self {
        Self::built(Vec::new(), sandbox(), None, Some(tokens))
    }

    fn with(verify: Vec<String>, sandbox: Sandbox, fetch: Option<FetchPolicy>) -> Self {
        Self::built(verify, sandbox, fetch, None)
    }

    fn built(
        verify: Vec<String>,
        sandbox: Sandbox,
        fetch: Option<FetchPolicy>,
        recall: Option<u64>,
    ) -> Self {
        let cache = TempDir::new().unwrap();
        let recall = recall.map(|tokens| {
            let memory = memory(cache.path());
            MemorySettings { memory, tokens, folder: "memory", context_tokens: tokens + 1000 }
        });
        let settings = Settings { verify, sandbox, fetch, recall, ..settings(cache.path()) };
        Self {
            dir: TempDir::new().unwrap(),
            cache,
            toolbox: Toolbox::new(settings),
            heard: Arc::default(),
            cancel: watch::Sender::new(false),
            calls: AtomicUsize::new(0),
        }
    }

    /// The names of the tools.
    pub(crate) fn tools(&self) -> Vec<String> {
        self.toolbox.specs().iter().map(|spec| spec.name.clone()).collect()
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    /// Writes files, each with the folders it needs.
    pub(crate) fn files(&self, files: &[(&str, &str)]) {
        for (name, content) in files {
            let path = self.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// Every file and what is in it, to see whether anything changed.
    pub(crate) fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut found, mut left) = (Vec::new(), vec![self.path().to_owned()]);
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let is_dir = path.symlink_metadata().unwrap().is_dir();
                found.push((path.clone(), std::fs::read(&path).unwrap_or_default()));
                left.extend(is_dir.then_some(path));
            }
        }
        found.sort();
        found
    }

    /// Makes the workspace a repository in which everything is committed.
    pub(crate) async fn commit(&self) {
        let git = "git -c user.name=x -c user.email=x@example.org -c init.defaultBranch=main";
        let command = format!("git init -q && {git} add -A && {git} commit -qm x --allow-empty");
        let output = self.run("shell", serde_json::json!({ "command": command })).await;
        assert!(output.outcome.ok(), "{}", text(&output));
    }

    /// The text of a result; one that says why it failed begins with `! `.
    pub(crate) async fn tell(&self, tool: &str, input: Value) -> String {
        let output = self.run(tool, input).await;
        assert_eq!(output.outcome.ok(), output.outcome.error.is_none());
        let mark = if output.outcome.ok() { "" } else { "! " };
        format!("{mark}{}", text(&output))
    }

    pub(crate) async fn run(&self, tool: &str, input: Value) -> ToolOutput {
        self.run_in(self.path(), tool, input).await
    }

    pub(crate) async fn run_in(&self, workspace: &Path, tool: &str, input: Value) -> ToolOutput {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        self.invoke(tool, call(number, workspace, input)).await
    }

    /// A call of a conversation that has these pictures.
    pub(crate) async fn run_with(
        &self,
        pictures: Vec<CallArtifact>,
        tool: &str,
        input: Value,
    ) -> ToolOutput {
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let call = Invocation { pictures, ..call(number, self.path(), input) };
        self.invoke(tool, call).await
    }

    async fn invoke(&self, tool: &str, call: Invocation) -> ToolOutput {
        let context = ToolContext {
            progress: self.heard.clone(),
            cancel: Arc::new(Switch(self.cancel.subscribe())),
            questions: Arc::new(NobodyToAsk),
        };
        self.toolbox.get(tool).unwrap().run(call, context).await
    }

    pub(crate) async fn assess(&self, tool: &str, input: Value) -> Assessment {
        let next = self.calls.load(Ordering::Relaxed) + 1;
        self.toolbox.get(tool).unwrap().assess(&call(next, self.path(), input)).await
    }

    /// The context of the workspace, each section under its title.
    pub(crate) async fn survey(&self, workspace: &Path, tokens: usize) -> String {
        let sections = self.toolbox.workspaces().gather_context(workspace, tokens as u64).await;
        sections.iter().map(|section| format!("{}:\n{}", section.title, section.text)).collect()
    }

    /// All changes as one diff.
    pub(crate) async fn diff(&self, changes: Vec<ChangedFile>) -> String {
        self.toolbox.workspaces().diff(self.path(), held(changes)).await
    }

    pub(crate) async fn put_back(&self, changes: Vec<ChangedFile>) -> Result<(), String> {
        self.toolbox
            .workspaces()
            .revert_changes(self.path(), held(changes), RevertMode::Apply)
            .await
    }

    pub(crate) async fn could_put_back(&self, changes: Vec<ChangedFile>) -> Result<(), String> {
        self.toolbox
            .workspaces()
            .revert_changes(self.path(), held(changes), RevertMode::DryRun)
            .await
    }

    /// The same workspace and cache, as a daemon that starts again has them.
    pub(crate) fn restarted(self) -> Self {
        let toolbox = Toolbox::new(settings(self.cache.path()));
        Self { toolbox, ..self }
    }

    /// What a new start would find out about the last call, had it been cut off; see [`changed`].
    pub(crate) async fn cut_off(&self) -> Option<Vec<String>> {
        let traces = self.traces().await?;
        Some(traces.changes.iter().map(shown).collect())
    }

    /// What is known of the last call.
    pub(crate) async fn traces(&self) -> Option<InterruptedChanges> {
        let last = self.calls.load(Ordering::Relaxed);
        let Invocation { turn, call, .. } = call(last, self.path(), Value::Null);
        self.toolbox.workspaces().interrupted_changes(self.path(), &turn, &call).await
    }

    /// The turn is over.
    pub(crate) fn over(&self) {
        self.toolbox.workspaces().turn_ended(&call(0, self.path(), Value::Null).turn);
    }

    /// Whether a process runs in the workspace that goes by this number where it is.
    pub(crate) fn lives(&self, pid: &str) -> bool {
        let here = self.path().canonicalize().unwrap();
        let is_here =
            |process: &Path| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == here);
        let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
        processes.into_iter().any(|it| own_number(&it).as_deref() == Some(pid) && is_here(&it))
    }

    pub(crate) fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    pub(crate) fn heard(&self) -> String {
        self.heard.0.lock().unwrap().clone()
    }

    /// Waits until the tool said a whole line that begins like this; gives the rest of it.
    pub(crate) async fn hear(&self, start: &str) -> String {
        let heard = || {
            let heard = self.heard();
            let whole = &heard[..heard.rfind('\n').unwrap_or(0)];
            whole.lines().find_map(|line| line.strip_prefix(start).map(str::to_owned))
        };
        until(start, heard).await
    }
}

/// True if commands get namespaces here. They do not where the kernel forbids it, or where these tests
/// are run by a command that is in a sandbox itself.
pub(crate) fn has_namespaces() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| try_namespaces(SUPERVISOR.as_ref()).is_ok())
}

/// A sandbox in which programs may set permissions, as `git init` has to, also without namespaces.
fn sandbox() -> Sandbox {
    let usual = Sandbox::default();
    if has_namespaces() { usual } else { Sandbox { mode: Mode::Prefer, ..usual } }
}

/// Tools of which none is special.
fn settings(cache: &Path) -> Settings {
    Settings {
        supervisor: PathBuf::from(SUPERVISOR),
        verify: Vec::new(),
        sandbox: Sandbox::default(),
        fetch: None,
        search: None,
        cache: cache.join("snapshots"),
        recall: None,
        ocr: None,
        blobs: None,
        editors: None,
    }
}

fn memory(cache: &Path) -> Arc<MarkdownMemory> {
    let settings = quintet_memory::Settings {
        index: cache.join("memory"),
        keep_days: 0,
        expired: quintet_memory::OnExpiry::Archive,
        soft_limit_bytes: 40,
    };
    Arc::new(MarkdownMemory::new(settings, Arc::new(FakeClock::new())))
}

fn call(number: usize, workspace: &Path, input: Value) -> Invocation {
    Invocation {
        session: SessionId::parse("sess_1").unwrap(),
        call: CallId::parse(&format!("call_{number}")).unwrap(),
        turn: TurnId::parse("turn_1").unwrap(),
        workspace: workspace.to_owned(),
        input,
        pictures: Vec::new(),
    }
}

/// The text the model reads.
pub(crate) fn text(output: &ToolOutput) -> String {
    text_of(&output.outcome.parts)
}

/// The report that the model reads, as JSON, without the notes after it.
pub(crate) fn json(output: &ToolOutput) -> Value {
    serde_json::from_str(text_of(&output.outcome.parts[..1]).as_str()).unwrap()
}

/// What a call did to files, as `path: before > after`; `-` is no file, `/` a folder, `|` a pipe,
/// `?` what was not kept, and `@` comes before where a link leads.
pub(crate) fn changed(output: &ToolOutput) -> Vec<String> {
    output.changes.iter().map(shown).collect()
}

fn shown(change: &ChangedFile) -> String {
    let text = |content: &Option<FileContent>| match content {
        None => "-".to_owned(),
        Some(FileContent { shape: FileKind::Folder, .. }) => "/".to_owned(),
        Some(FileContent { shape: FileKind::Pipe, .. }) => "|".to_owned(),
        Some(content @ FileContent { shape, .. }) => {
            let mark = if *shape == FileKind::Link { "@" } else { "" };
            let text = bytes(content).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            format!("{mark}{}", text.unwrap_or_else(|| "?".to_owned()))
        }
    };
    format!("{}: {} > {}", change.path, text(&change.before), text(&change.after))
}

/// Changes with their contents in memory, as the runtime reads them from its store.
fn held(mut changes: Vec<ChangedFile>) -> Vec<ChangedFile> {
    for side in changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten() {
        if let Some(bytes) = bytes(side) {
            side.body = Some(BlobBody::Bytes(bytes));
        }
    }
    changes
}

/// What is in a file, wherever that is kept; nothing if it is not.
pub(crate) fn bytes(content: &FileContent) -> Option<Vec<u8>> {
    match content.body.clone()? {
        BlobBody::Bytes(bytes) => Some(bytes),
        BlobBody::File(FileRange { file, offset, length }) => {
            let mut bytes = vec![0; usize::try_from(length).unwrap()];
            File::open(file).unwrap().read_exact_at(&mut bytes, offset).unwrap();
            Some(bytes)
        }
        BlobBody::Hash(_) => None,
    }
}

/// Whether there is such a process, a zombie included.
pub(crate) fn lives(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

/// The last number that a process goes by: the one in its own namespace.
fn own_number(process: &Path) -> Option<String> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_whitespace().last().map(str::to_owned)
}

/// Waits until something is there.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + CONDITION_TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

#[derive(Default)]
struct Heard(Mutex<String>);

impl ToolProgress for Heard {
    fn report(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

struct Switch(watch::Receiver<bool>);

impl CancelSignal for Switch {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        let mut switch = self.0.clone();
        Box::pin(async move {
            if switch.wait_for(|on| *on).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }
}
