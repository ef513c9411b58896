//! Integration tests with the real small model. The content of its answers is not tested.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod answers;
mod memory;
mod troubles;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quintet_kernel::model::{
    AssistantPart, Channel, Chunk, Failure, ModelRef, ModelResponse, Prompt, PromptMessage,
    PromptPart, Sampling, WebSearch,
};
use quintet_kernel::port::{ModelStream, Models as _};
use quintet_local::{Local, Settings, weights};
use quintet_weights::{Progress, Registries, pull};

/// The small model, loaded with the first request.
fn local() -> Local {
    with(|_| {})
}

fn with(change: impl FnOnce(&mut Settings)) -> Local {
    let idle = Duration::from_secs(600);
    // Tests run concurrently, and threads that wait for each other would slow them all down.
    let threads = Some(1);
    let mut settings = Settings { models_dir: models_dir(), window: 2048, idle, threads };
    change(&mut settings);
    Local::new(settings)
}

/// The user's models directory with the small model, which is downloaded once and not for every
/// clone.
fn models_dir() -> PathBuf {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    let fetch = || {
        let environment: Vec<(String, String)> = std::env::vars().collect();
        let get = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, dir)| dir);
        let cache = get("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(get("HOME")?).join(".cache"))).unwrap();
        let dir = cache.join("quintet/models");
        let small = weights::find("small").unwrap();
        let threads = tokio::runtime::Runtime::new().unwrap();
        let registries = Registries::new(&environment);
        threads.block_on(pull(small.model(), &dir, &registries, &PrintedProgress)).unwrap();
        dir
    };
    // A runtime cannot run inside a test's own.
    READY.get_or_init(|| std::thread::spawn(fetch).join().unwrap()).clone()
}

struct PrintedProgress;

impl Progress for PrintedProgress {
    fn line(&self, text: &str) {
        eprintln!("{text}");
    }

    fn bytes(&self, _: u64, _: u64) {}
}

/// A prompt for the small model with a deterministic answer.
fn prompt(messages: Vec<PromptMessage>, max_tokens: u64) -> Prompt {
    Prompt {
        model: ModelRef { provider: "local".into(), model: "smollm2-135m".into() },
        system: "You are a helpful assistant.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Vec::new(),
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling {
            max_tokens: Some(max_tokens),
            temperature: Some(0.0),
            ..Sampling::default()
        },
        account: None,
    }
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

fn assistant(text: &str) -> PromptMessage {
    PromptMessage::Assistant { by: None, parts: vec![AssistantPart::Text(text.into())] }
}

/// A complete answer.
#[derive(Debug)]
struct Received {
    text: String,
    /// The number of pieces of the text.
    pieces: usize,
    /// Notices about loading.
    notices: Vec<String>,
    answer: ModelResponse,
}

async fn ask(local: &Local, prompt: Prompt) -> Result<Received, Failure> {
    collect(local.stream(prompt)).await
}

async fn collect(mut stream: Box<dyn ModelStream>) -> Result<Received, Failure> {
    let (mut text, mut pieces, mut notices) = (String::new(), 0, Vec::new());
    loop {
        for chunk in stream.next().await? {
            match chunk {
                Chunk::Output(Channel::Text, more) => {
                    text.push_str(&more);
                    pieces += 1;
                }
                Chunk::Retrying { reason, .. } => notices.push(reason),
                Chunk::Finished(answer) => return Ok(Received { text, pieces, notices, answer }),
                other @ Chunk::Output(..) => panic!("{other:?}"),
            }
        }
    }
}

/// A tool that is never called, because the small model is not offered any.
fn tool() -> Arc<quintet_kernel::tool::ToolSpec> {
    use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
    Arc::new(ToolSpec {
        name: "shell".into(),
        description: "runs a command".into(),
        schema: serde_json::json!({ "type": "object" }),
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    })
}
