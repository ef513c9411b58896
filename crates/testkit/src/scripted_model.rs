//! An in-process model whose answers a test provides step by step.
//!
//! ```text
//! let asked = model.asked().await;   // the agent called the model
//! asked.say("Hel");                  // the model streams text
//! asked.finish();                    // the answer is complete
//! ```

use std::collections::VecDeque;
use std::future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::model::{
    Channel, Chunk, Failure, FailureKind, FinishReason, ModelInfo, ModelRef, ModelResponse,
    Profile, Prompt, RawToolCall, SearchSupport, Usage,
};
use quintet_kernel::port::{BoxFuture, ModelProfiles, ModelStream, Models};
use tokio::sync::{Notify, mpsc};

type ChunkResult = Result<Vec<Chunk>, Failure>;

/// A model whose answers a test provides. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct ScriptedModel {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<VecDeque<ScriptedCall>>,
    arrived: Notify,
    count: AtomicUsize,
}

impl ScriptedModel {
    /// A model without calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of calls.
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// The oldest call that was not returned yet; waits for one.
    pub async fn asked(&self) -> ScriptedCall {
        loop {
            let arrived = self.shared.arrived.notified();
            if let Some(asked) = self.shared.waiting().pop_front() {
                return asked;
            }
            arrived.await;
        }
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<ScriptedCall>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Models for ScriptedModel {
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream> {
        let (pen, news) = mpsc::unbounded_channel();
        let endless = Arc::new(Mutex::new(None));
        let asked = ScriptedCall { prompt, pen, endless: Arc::clone(&endless) };
        self.shared.waiting().push_back(asked);
        self.shared.count.fetch_add(1, Ordering::SeqCst);
        self.shared.arrived.notify_one();
        Box::new(ScriptedStream { news, endless })
    }

    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        Box::pin(future::ready(Vec::new()))
    }
}

/// All models of the provider `fake` exist.
impl ModelProfiles for ScriptedModel {
    fn profile(&self, model: &ModelRef) -> Option<Profile> {
        let (inputs, search) = (Vec::new(), SearchSupport::Never);
        let profile = Profile { inputs, tools: true, context_window: None, search };
        (model.provider == "fake").then_some(profile)
    }
}

/// A call of the model, and the means to answer it. Dropping it leaves the answer unfinished.
#[derive(Debug)]
pub struct ScriptedCall {
    /// The prompt.
    pub prompt: Prompt,
    pen: mpsc::UnboundedSender<ChunkResult>,
    endless: Arc<Mutex<Option<String>>>,
}

impl ScriptedCall {
    /// Streams text.
    pub fn say(&self, text: &str) {
        self.send(vec![Chunk::Output(Channel::Text, text.into())]);
    }

    /// Streams a thought.
    pub fn think(&self, text: &str) {
        self.send(vec![Chunk::Output(Channel::Thought, text.into())]);
    }

    /// Streams several chunks that arrive together.
    pub fn send(&self, chunks: Vec<Chunk>) {
        let _ = self.pen.send(Ok(chunks));
    }

    /// Streams this text again and again from now on, so that the reader never waits.
    pub fn write_without_pause(&self, text: &str) {
        *self.endless.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
        self.send(Vec::new());
    }

    /// Completes the answer.
    pub fn finish(&self) {
        self.send(vec![Chunk::Finished(response(Vec::new()))]);
    }

    /// Completes the answer with tool calls: each an id, a name and arguments.
    pub fn call(&self, calls: &[(&str, &str, &str)]) {
        let call = |(id, tool, arguments): &(&str, &str, &str)| RawToolCall {
            id: (*id).into(),
            tool: (*tool).into(),
            arguments: (*arguments).into(),
        };
        self.send(vec![Chunk::Finished(response(calls.iter().map(call).collect()))]);
    }

    /// Fails the call.
    pub fn fail(&self, kind: FailureKind, message: &str) {
        let _ = self.pen.send(Err(Failure { kind, message: message.into() }));
    }

    /// True if the caller dropped the stream.
    pub fn dropped(&self) -> bool {
        self.pen.is_closed()
    }

    /// Waits until the caller drops the stream.
    pub async fn hung_up(&self) {
        self.pen.closed().await;
    }
}

/// A response with ten input tokens and five output tokens.
pub fn response(calls: Vec<RawToolCall>) -> ModelResponse {
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    ModelResponse::new(finish, calls, usage)
}

struct ScriptedStream {
    news: mpsc::UnboundedReceiver<ChunkResult>,
    endless: Arc<Mutex<Option<String>>>,
}

impl ScriptedStream {
    fn endless(&self) -> Option<String> {
        self.endless.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ModelStream for ScriptedStream {
    fn next(&mut self) -> BoxFuture<'_, ChunkResult> {
        Box::pin(async move {
            if let Some(text) = self.endless() {
                return Ok(vec![Chunk::Output(Channel::Text, text)]);
            }
            match self.news.recv().await {
                Some(news) => news,
                None => future::pending().await,
            }
        })
    }
}
