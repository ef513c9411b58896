//! A tool whose result the test provides.

use std::collections::VecDeque;
use std::future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, CallSubject, Placement, Risk, ToolKind, ToolSpec};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

/// A tool whose runs a test controls.
#[derive(Debug)]
pub struct ManualTool {
    spec: Arc<ToolSpec>,
    waiting: Mutex<VecDeque<ToolRun>>,
    arrived: Notify,
    count: AtomicUsize,
}

impl ManualTool {
    /// A tool of that name.
    pub fn new(name: &str, kind: ToolKind) -> Self {
        let spec = ToolSpec {
            name: name.into(),
            description: "Does as it is told.".into(),
            schema: json!({ "type": "object" }),
            kind,
            placement: Placement::Daemon,
            strict: false,
        };
        Self {
            spec: Arc::new(spec),
            waiting: Mutex::default(),
            arrived: Notify::new(),
            count: AtomicUsize::new(0),
        }
    }

    /// Number of runs.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// The oldest run that was not returned yet; waits for one.
    pub async fn started(&self) -> ToolRun {
        loop {
            let arrived = self.arrived.notified();
            if let Some(job) = self.waiting().pop_front() {
                return job;
            }
            arrived.await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<ToolRun>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tool for ManualTool {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = format!("{} {}", self.spec.name, call.input);
        Box::pin(future::ready(Assessment {
            risk: Risk::Low,
            reasons: Vec::new(),
            reversible: true,
            preview,
            subject: CallSubject::default(),
            settled: None,
        }))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        let (done, told) = oneshot::channel();
        self.waiting().push_back(ToolRun { call, context, done });
        self.count.fetch_add(1, Ordering::SeqCst);
        self.arrived.notify_one();
        Box::pin(async move {
            match told.await {
                Ok(output) => output,
                // The test dropped the call: it never ends.
                Err(_) => future::pending().await,
            }
        })
    }
}

/// A run of the tool. Dropping it leaves the tool running forever.
#[derive(Debug)]
pub struct ToolRun {
    /// The call.
    pub call: Invocation,
    context: ToolContext,
    done: oneshot::Sender<ToolOutput>,
}

impl ToolRun {
    /// Reports progress.
    pub fn say(&self, text: &str) {
        self.context.progress.report(text);
    }

    /// Waits until the call is cancelled.
    pub async fn stopped(&self) {
        self.context.cancel.cancelled().await;
    }

    /// Ends the run with this output.
    pub fn finish(self, output: impl Into<ToolOutput>) {
        let _ = self.done.send(output.into());
    }

    /// True if the caller dropped the run.
    pub fn given_up(&self) -> bool {
        self.done.is_closed()
    }

    /// Waits until the caller drops the run.
    pub async fn abandoned(&mut self) {
        self.done.closed().await;
    }
}
