//! A model inside the process whose answers a test writes step by step.
//!
//! ```text
//! let asked = model.asked().await;   // the agent asked something
//! asked.say("Hel");                  // the model writes
//! asked.finish();                    // and is done
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

/// A model whose answers a test provides. Clones are the same model.
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
    /// A model that was not asked anything yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// How often it was asked.
    pub fn count(&self) -> usize {
        self.shared.count.load(Ordering::SeqCst)
    }

    /// The oldest request that was not taken yet; waits for one.
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

/// The models are those of the provider `fake`.
impl ModelProfiles for ScriptedModel {
    fn profile(&self, model: &ModelRef) -> Option<Profile> {
        let (inputs, search) = (Vec::new(), SearchSupport::Never);
        let profile = Profile { inputs, tools: true, context_window: None, search };
        (model.provider == "fake").then_some(profile)
    }
}

/// A question to the model, and the pen to answer it. Dropping it leaves the answer unfinished.
#[derive(Debug)]
pub struct ScriptedCall {
    /// The question.
    pub prompt: Prompt,
    pen: mpsc::UnboundedSender<ChunkResult>,
    endless: Arc<Mutex<Option<String>>>,
}

impl ScriptedCall {
    /// Writes some text.
    pub fn say(&self, text: &str) {
        self.send(vec![Chunk::Output(Channel::Text, text.into())]);
    }

    /// Thinks aloud.
    pub fn think(&self, text: &str) {
        self.send(vec![Chunk::Output(Channel::Thought, text.into())]);
    }

    /// Writes several chunks that arrive together.
    pub fn send(&self, chunks: Vec<Chunk>) {
        let _ = self.pen.send(Ok(chunks));
    }

    /// Writes this text again and again from now on, without ever making the reader wait.
    pub fn write_without_pause(&self, text: &str) {
        *self.endless.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.into());
        self.send(Vec::new());
    }

    /// Ends the answer.
    pub fn finish(&self) {
        self.send(vec![Chunk::Finished(response(Vec::new()))]);
    }

    /// Ends the answer by asking for tools: each by its id, name and arguments.
    pub fn call(&self, calls: &[(&str, &str, &str)]) {
        let call = |(id, tool, arguments): &(&str, &str, &str)| RawToolCall {
            id: (*id).into(),
            tool: (*tool).into(),
            arguments: (*arguments).into(),
        };
        self.send(vec![Chunk::Finished(response(calls.iter().map(call).collect()))]);
    }

    /// Breaks off.
    pub fn fail(&self, kind: FailureKind, message: &str) {
        let _ = self.pen.send(Err(Failure { kind, message: message.into() }));
    }

    /// True if the client is gone.
    pub fn dropped(&self) -> bool {
        self.pen.is_closed()
    }

    /// Waits until the client is gone.
    pub async fn hung_up(&self) {
        self.pen.closed().await;
    }
}

/// The end of an answer that costs ten tokens in and five out.
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
