//! Tests that a shared prefix is stored across restarts, with the real small model.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::{
    Chunk, FinishReason, ModelRef, ModelResponse, Prompt, PromptMessage, PromptPart, Sampling,
    Usage, WebSearch,
};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use quintet_weights::{Progress, Registries, pull};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use super::tuning::{ThreadChoice, Tuning, TuningFile};
use super::{Engine, Job, Settings};
use crate::chat::small::Help;
use crate::chat::{Piece, Script};
use crate::weights;

struct Quiet;

impl Progress for Quiet {
    fn line(&self, _: &str) {}
    fn bytes(&self, _: u64, _: u64) {}
}

/// The tuning file of the small model with one thread.
fn tuning_file(dir: &Path) -> TuningFile {
    TuningFile::new(dir, weights::find("small").unwrap(), ThreadChoice::Fixed(1))
}

/// A directory with the small model, linked from the user's cache.
async fn models_dir() -> tempfile::TempDir {
    let environment: Vec<(String, String)> = std::env::vars().collect();
    let get = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, dir)| dir);
    let cache = get("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(get("HOME")?).join(".cache"))).unwrap();
    let (small, registries) = (weights::find("small").unwrap(), Registries::new(&environment));
    let models = cache.join("quintet/models");
    pull(small.model(), &models, &registries, &Quiet).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = &small.file.name;
    symlink(models.join(file), dir.path().join(file)).unwrap();
    // The output of such a small model may change with the batch size.
    tuning_file(dir.path()).save(Tuning { threads: 1, batch_tokens: 64 });
    dir
}

const COLOURS: &str = "The colours are red, green and blue. ";

/// The stored prefixes of a model.
fn states(dir: &Path) -> Vec<PathBuf> {
    let paths = dir.join("read").read_dir().unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending == "kv")).collect()
}

/// Runs a new engine with a long prefix and a short question.
async fn ask(dir: &Path, question: &str) -> (String, Usage) {
    ask_after(dir, COLOURS, question).await
}

/// Like [`ask`], with another prefix.
async fn ask_after(dir: &Path, beginning: &str, question: &str) -> (String, Usage) {
    let (text, answer) = ask_with(dir, (beginning, question), None, 8).await;
    (text, answer.usage)
}

async fn ask_with(
    dir: &Path,
    (beginning, question): (&str, &str),
    help: Option<Help>,
    max_tokens: u64,
) -> (String, ModelResponse) {
    let idle = Duration::from_secs(600);
    let settings = Settings { models_dir: dir.into(), window: 1024, idle, threads: Some(1) };
    let engine = Arc::new(Engine::new(settings));
    let shared = vec![Piece::Plain(beginning.repeat(20))];
    let prompt = Script { shared, own: vec![Piece::Plain(question.into())] };
    let sampling =
        Sampling { max_tokens: Some(max_tokens), temperature: Some(0.0), ..Sampling::default() };
    let tools = help.iter().map(|_| "edit_file".to_owned()).collect();
    let (chunks, mut received) = unbounded_channel();
    engine.submit(weights::find("small").unwrap(), Job { prompt, tools, sampling, help, chunks });
    let mut text = String::new();
    loop {
        match received.recv().await.unwrap().unwrap() {
            Chunk::Output(_, more) => text.push_str(&more),
            Chunk::Finished(answer) => {
                tokio::task::spawn_blocking(move || engine.close()).await.unwrap();
                return (text, answer);
            }
            Chunk::Retrying { .. } => {}
        }
    }
}

#[tokio::test]
async fn a_shared_prefix_is_evaluated_once_even_across_restarts() {
    let dir = models_dir().await;
    let (fresh, first) = ask(dir.path(), "The first colour is").await;
    assert_eq!(first.cached, 0);
    let (known, second) = ask(dir.path(), "The first colour is").await;
    assert!(second.cached > 100 && second.input - second.cached < 8, "{second:?}");
    assert_eq!(known, fresh, "the answer is the same");
    let (_, other) = ask(dir.path(), "The last colour is").await;
    assert_eq!(other.cached, second.cached);
}

#[tokio::test]
async fn a_damaged_prefix_is_replaced() {
    let dir = models_dir().await;
    let (fresh, _) = ask(dir.path(), "The first colour is").await;
    let file = states(dir.path()).remove(0);
    let bytes = std::fs::read(&file).unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    for damaged in [&bytes[..bytes.len() / 2], &flipped, &[]] {
        std::fs::write(&file, damaged).unwrap();
        let (again, usage) = ask(dir.path(), "The first colour is").await;
        assert_eq!((again, usage.cached), (fresh.clone(), 0));
        assert_eq!(states(dir.path()), std::slice::from_ref(&file));
        assert_eq!(std::fs::read(&file).unwrap().len(), bytes.len());
    }
}

#[tokio::test]
async fn a_model_is_measured_once() {
    let dir = models_dir().await;
    let file = dir.path().join("read").read_dir().unwrap().next().unwrap().unwrap().path();
    std::fs::remove_file(file).unwrap();
    assert_eq!(tuning_file(dir.path()).load(), None);
    ask(dir.path(), "The first colour is").await;
    let measured = tuning_file(dir.path()).load().unwrap();
    assert_eq!(measured.threads, 1);
    let kept =
        Tuning { threads: 1, batch_tokens: if measured.batch_tokens == 32 { 64 } else { 32 } };
    tuning_file(dir.path()).save(kept);
    ask(dir.path(), "The first colour is").await;
    assert_eq!(tuning_file(dir.path()).load(), Some(kept), "stored values are not measured again");
}

#[tokio::test]
async fn old_prefixes_and_incomplete_files_are_deleted() {
    let dir = models_dir().await;
    ask(dir.path(), "The first colour is").await;
    let read = dir.path().join("read");
    std::fs::write(read.join("smollm2-135m-1.draft"), "cut off").unwrap();
    std::fs::write(read.join("another-1.draft"), "of another model").unwrap();
    for beginning in ["The animals are cat, dog and hen. ", "The towns are Rome, Oslo and Bern. "] {
        ask_after(dir.path(), beginning, "The first one is").await;
    }
    let names = read.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let drafts: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".draft")).collect();
    assert_eq!((states(dir.path()).len(), drafts), (2, vec!["another-1.draft".into()]));
    let (_, usage) = ask(dir.path(), "The first colour is").await;
    assert_eq!(usage.cached, 0, "the oldest prefix was deleted");
}

/// The help for a message with one tool.
fn help(message: &str) -> Help {
    let tool = Arc::new(ToolSpec {
        name: "edit_file".into(),
        description: "Edits a file".into(),
        schema: json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "size": { "type": "integer" } },
            "required": ["path", "size"],
        }),
        kind: ToolKind::Write,
        placement: Placement::Daemon,
        strict: false,
    });
    let row = weights::Weights { small: true, ..weights::find("small").unwrap().clone() };
    let message = PromptMessage::User(vec![PromptPart::Text(message.into())]);
    let prompt = Prompt {
        model: ModelRef { provider: "local".into(), model: row.name.clone() },
        system: String::new(),
        messages: vec![Arc::new(message)],
        tools: vec![tool.clone()],
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling::default(),
        account: None,
    };
    Help::of(&prompt, &row, &[tool]).unwrap()
}

/// Such a small model never calls a tool by itself; the grammar forces it to.
#[tokio::test]
async fn an_answer_matches_its_grammar() {
    let dir = models_dir().await;
    let (text, answer) = ask_with(dir.path(), (COLOURS, "Fix it"), Some(help("Fix it")), 200).await;
    assert_eq!((text.as_str(), &answer.finish), ("", &FinishReason::ToolCalls));
    let call = &answer.calls[0];
    let input: Value = serde_json::from_str(&call.arguments).unwrap();
    // The file was not read yet, so it is read first.
    assert!(call.tool == "read_file" && input["path"].is_string(), "{call:?}");
    let (text, answer) =
        ask_with(dir.path(), (COLOURS, "Say hello"), Some(help("hello")), 12).await;
    assert!(answer.calls.is_empty() && !text.starts_with(['{', '<', '`']), "{text}");
}

#[tokio::test]
async fn a_worker_that_panics_does_not_count_as_loaded() {
    let settings = Settings {
        models_dir: "/nonexistent".into(),
        window: 1,
        idle: Duration::ZERO,
        threads: None,
    };
    let (engine, small) = (Arc::new(Engine::new(settings)), weights::find("small").unwrap());
    {
        let mut workers = engine.workers();
        workers.insert(&small.name, engine.spawn(small, |_| panic!("on purpose")).unwrap());
    }
    let unregistered = async {
        while !engine.loaded().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), unregistered).await.unwrap();
}
