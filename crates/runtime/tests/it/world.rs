//! A runtime with its dependencies, and client operations for tests.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quintet_kernel::command::{Approve, NewMessage, TurnStart};
use quintet_kernel::event::{ApprovalDecision, DecidedBy, NewSession, RememberScope, TurnOptions};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::{
    ApprovalPolicy, Limits, OnDeny, Recovery, ReviewMode, Rules, SubagentLimits, VerifyPolicy,
};
use quintet_kernel::port::{Drafts, Error, Journal, Memory, Page, Receipt, Sessions, Tool};
use quintet_kernel::tool::ToolKind;
use quintet_kernel::{ApprovalId, Command, Cursor, Event, Record, SessionId, State};
use quintet_runtime::{Runtime, RuntimeDeps, Timing};
use quintet_stores::memory::MemoryStore;
use quintet_testkit::clock::FakeClock;
use quintet_testkit::manual_tool::ManualTool;
use quintet_testkit::memory_notes::MemoryNotes;
use quintet_testkit::memory_workspace::MemoryWorkspace;
use quintet_testkit::scripted_model::{ScriptedCall, ScriptedModel};

use crate::gated_store::GatedJournal;
use crate::watcher::Watcher;

/// Longer than closing ever takes.
pub(crate) const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// The dependencies of a runtime. They outlive it, as disks do.
pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) journal: Arc<GatedJournal>,
    pub(crate) drafts: Arc<dyn Drafts>,
    pub(crate) model: ScriptedModel,
    pub(crate) clock: Arc<FakeClock>,
    /// Reads.
    pub(crate) look: Arc<ManualTool>,
    /// Changes files.
    pub(crate) edit: Arc<ManualTool>,
    /// Runs commands.
    pub(crate) shell: Arc<ManualTool>,
    pub(crate) timing: Timing,
    pub(crate) ask_for: Vec<ToolKind>,
    pub(crate) recovery: Recovery,
    pub(crate) review: ReviewMode,
    pub(crate) context_tokens: u64,
    /// The workspace.
    pub(crate) folder: MemoryWorkspace,
    /// The memory; `None` if it is off.
    pub(crate) memory: Option<Arc<MemoryNotes>>,
    pub(crate) time: Duration,
}

impl World {
    pub(crate) fn new() -> Self {
        let store = MemoryStore::new();
        Self {
            journal: Arc::new(GatedJournal::new(store.clone())),
            drafts: Arc::new(store.clone()),
            store,
            model: ScriptedModel::new(),
            clock: Arc::new(FakeClock::new()),
            look: Arc::new(ManualTool::new("look", ToolKind::Read)),
            edit: Arc::new(ManualTool::new("edit", ToolKind::Write)),
            shell: Arc::new(ManualTool::new("shell", ToolKind::Exec)),
            timing: Timing::default(),
            ask_for: Vec::new(),
            recovery: Recovery::Continue,
            review: ReviewMode::Off,
            context_tokens: 0,
            folder: MemoryWorkspace::default(),
            memory: None,
            time: Duration::from_secs(24 * 3600),
        }
    }

    /// Starts a runtime with these dependencies.
    pub(crate) fn start(&self) -> Runtime {
        Runtime::new(self.deps())
    }

    pub(crate) fn deps(&self) -> RuntimeDeps {
        let (look, edit) = (Arc::clone(&self.look), Arc::clone(&self.edit));
        let tools: [Arc<dyn Tool>; 3] = [look, edit, Arc::clone(&self.shell) as Arc<dyn Tool>];
        RuntimeDeps {
            journal: Arc::clone(&self.journal) as Arc<dyn Journal>,
            leases: Arc::new(self.store.clone()),
            session_index: Arc::new(self.store.clone()),
            drafts: Arc::clone(&self.drafts),
            blobs: Arc::new(self.store.clone()),
            undo: Arc::new(self.store.clone()),
            models: Arc::new(self.model.clone()),
            rules: Arc::new(self.rules(&tools)),
            tool_source: None,
            tools: tools.into_iter().map(|tool| (tool.spec().name.clone(), tool)).collect(),
            workspaces: Arc::new(self.folder.clone()),
            memory: self.memory.clone().map(|memory| memory as Arc<dyn Memory>),
            clock: self.clock.clone(),
            observers: Vec::new(),
            cluster: None,
            timing: self.timing,
        }
    }

    /// Reopens the stores as after a crash: earlier owners may no longer write.
    pub(crate) fn reopen(&mut self) {
        self.store = self.store.reopen();
        self.journal = Arc::new(GatedJournal::new(self.store.clone()));
        self.drafts = Arc::new(self.store.clone());
    }

    fn rules(&self, tools: &[Arc<dyn Tool>]) -> Rules {
        Rules {
            approval: ApprovalPolicy {
                rules: Vec::new(),
                kinds: self.ask_for.clone(),
                tools: Vec::new(),
                on_deny: OnDeny::Continue,
                expires: None,
            },
            review: self.review,
            context_tokens: self.context_tokens,
            save_memory: self.memory.is_some(),
            verify: VerifyPolicy { auto: false, tool: "verify".into(), attempts: 3 },
            limits: Limits {
                steps: 50,
                tokens: u64::MAX,
                time: self.time,
                repeats: 3,
                compact_at_percent: 80,
                assumed_window: 128_000,
            },
            recovery: self.recovery,
            client_grace: Duration::from_secs(30),
            subagents: SubagentLimits::default(),
            tools: tools.iter().map(|tool| tool.spec()).collect(),
            default_model: ModelRef::parse("fake/fake").unwrap(),
        }
    }

    /// The durable events.
    pub(crate) async fn journal_of(&self, session: &SessionId) -> Vec<Record> {
        let page = Page { events: usize::MAX, bytes: usize::MAX };
        self.store.read(session, 0, page).await.unwrap()
    }

    /// The names of the durable events.
    pub(crate) async fn names_of(&self, session: &SessionId) -> Vec<&'static str> {
        self.journal_of(session).await.iter().map(|record| name(&record.event)).collect()
    }

    /// The next model call.
    pub(crate) async fn asked(&self) -> ScriptedCall {
        within(self.model.asked()).await
    }
}

/// Operations of clients.
pub(crate) trait Client {
    async fn begin(&self) -> SessionId;
    async fn say(&self, session: &SessionId, text: &str) -> Result<Receipt, Error>;
    async fn cancel(&self, session: &SessionId) -> Result<Receipt, Error>;
    async fn label(&self, session: &SessionId, key: &str) -> Result<Receipt, Error>;
    async fn allow(&self, session: &SessionId, call: &str) -> Result<Receipt, Error>;
    async fn watch(&self, session: &SessionId, from: Cursor) -> Watcher;
    async fn state(&self, session: &SessionId) -> Arc<State>;
}

impl Client for Runtime {
    async fn begin(&self) -> SessionId {
        within(self.create(origin())).await.unwrap().session
    }

    async fn say(&self, session: &SessionId, text: &str) -> Result<Receipt, Error> {
        within(self.submit(session, say(text))).await
    }

    async fn cancel(&self, session: &SessionId) -> Result<Receipt, Error> {
        within(self.submit(session, Command::Cancel { reason: None })).await
    }

    async fn label(&self, session: &SessionId, key: &str) -> Result<Receipt, Error> {
        within(self.submit(session, label(key))).await
    }

    async fn allow(&self, session: &SessionId, call: &str) -> Result<Receipt, Error> {
        let approve = Approve {
            question: ApprovalId::parse(call).unwrap(),
            turn: None,
            answer: ApprovalDecision::Allow,
            reason: None,
            by: DecidedBy::Client,
            remember: RememberScope::Once,
            content: None,
        };
        within(self.submit(session, Command::Approve(approve))).await
    }

    async fn watch(&self, session: &SessionId, from: Cursor) -> Watcher {
        Watcher::new(within(self.follow(session, from)).await.unwrap())
    }

    async fn state(&self, session: &SessionId) -> Arc<State> {
        within(self.view(session)).await.unwrap()
    }
}

pub(crate) fn origin() -> NewSession {
    NewSession { workspace: "/".into(), ..NewSession::default() }
}

pub(crate) fn say(text: &str) -> Command {
    let (parts, options) = (vec![Part::Text(text.into())], TurnOptions::default());
    Command::AddMessage(Box::new(NewMessage::new(Role::User, parts, TurnStart::Now, options)))
}

pub(crate) fn label(key: &str) -> Command {
    Command::SetLabel { key: key.into(), value: Some("x".into()) }
}

/// The result of a future; fails if it hangs. The timeout exceeds all timeouts of a session.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    let patience = Duration::from_secs(120);
    tokio::time::timeout(patience, future).await.expect("this hangs")
}

/// True if the future is pending.
pub(crate) async fn waits<F: Future + Unpin>(future: &mut F) -> bool {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await
}

/// Runs everything that can run without waiting. If the clock is paused it advances by a
/// millisecond once all tasks are idle, also those on blocking threads.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(1)).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// An event's name.
pub(crate) fn name(event: &Event) -> &'static str {
    match event {
        Event::SessionCreated(_) => "created",
        Event::Forked { .. } => "forked",
        Event::Labelled { .. } => "labelled",
        Event::ModelSwitched { .. } => "switched",
        Event::AttachmentAdded(_) => "attached",
        Event::MessageAdded { .. } => "said",
        Event::TurnStarted { .. } => "turn",
        Event::ContextGathered { .. } => "context",
        Event::StepStarted { .. } => "step",
        Event::TextAppended { .. } => "text",
        Event::ModelRetrying { .. } => "retrying",
        Event::ModelCompleted { .. } => "answered",
        Event::StepInterrupted { .. } => "interrupted",
        Event::VerificationRequested { .. } => "verify",
        Event::ReviewRequested { .. } => "review",
        Event::Reviewed { .. } => "reviewed",
        Event::ApprovalRequested { .. } => "ask",
        Event::ApprovalAnswered { .. } => "word",
        Event::QuestionAsked { .. } => "question",
        Event::QuestionAnswered { .. } => "reply",
        Event::ToolsChosen(_) => "tools",
        Event::Instructed { .. } => "instructed",
        Event::Moved { .. } => "moved",
        Event::Forgotten { .. } => "forgotten",
        Event::Superseded { .. } => "replaced",
        Event::CallStarted { .. } => "call",
        Event::CallClaimed { .. } => "claimed",
        Event::ClaimHolderLost { .. } => "holder lost",
        Event::ClaimReleased { .. } => "released",
        Event::CallCompleted { .. } => "result",
        Event::StopRequested { .. } => "stop",
        Event::TurnResumed { .. } => "resumed",
        Event::TurnHeld { .. } => "held",
        Event::TurnReleased { .. } => "released",
        Event::TurnCompleted { .. } => "done",
        Event::TurnFailed { .. } => "failed",
        Event::TurnCancelled { .. } => "cancelled",
        Event::RevertRequested { .. } => "undo",
        Event::Reverted { .. } => "undone",
        Event::RevertFailed { .. } => "not undone",
        Event::CompactionRequested { .. } => "compact",
        Event::Compacted { .. } => "compacted",
        Event::CompactionFailed { .. } => "not compacted",
        Event::MemorySaved { .. } => "saved",
        Event::MemoryNotSaved { .. } => "not saved",
        Event::Subagent { .. } => "subagent",
        Event::SessionClosed { .. } => "closed",
    }
}
