//! Measures search in 10,000 notes, and indexing and searching 1,000 turns.
//!
//! `cargo run --release -p quintet-memory --example search_speed`. The vectors come from a fake
//! embedder with 384 dimensions that takes no time, so the figures exclude the time of a real
//! model.

#![expect(clippy::unwrap_used, reason = "a panic ends the measurement")]
#![expect(clippy::print_stdout, reason = "this prints figures")]
#![expect(clippy::disallowed_methods, reason = "this measures time")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quintet_kernel::memory::{MemoryQuery, SearchMethod};
use quintet_kernel::message::Role;
use quintet_kernel::port::{Clock, Memory as _, SessionQuery, SessionSearch as _};
use quintet_kernel::{MessageId, SessionId, Stamp, Time, TurnId};
use quintet_memory::{
    IndexedMessage, MarkdownMemory, MessageIndex, OnExpiry, SessionUpdate, Settings,
};
use quintet_testkit::clock::START_TIME;
use quintet_testkit::fake_embedder::FakeEmbedder;

const WORDS: &[&str] = &[
    "river", "stone", "garden", "window", "server", "deploy", "meeting", "ticket", "coffee",
    "train", "letter", "market", "forest", "bridge", "engine", "socket", "buffer", "parser",
    "thread", "budget", "invoice", "doctor", "school", "winter", "summer", "camera", "guitar",
    "planet", "rocket", "button",
];

const QUERIES: [&str; 4] =
    ["deploy server", "where is the invoice of the doctor", "word77 river", "guitar in winter"];

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn text(&mut self, words: usize) -> String {
        let word = |_| match self.below(3) {
            0 => format!("word{}", self.below(5000)),
            _ => WORDS[self.below(WORDS.len())].to_owned(),
        };
        (0..words).map(word).collect::<Vec<_>>().join(" ")
    }
}

struct FixedClock;

impl Clock for FixedClock {
    fn stamp(&self) -> Stamp {
        Stamp::new(START_TIME, [0, 0])
    }

    fn now(&self) -> Time {
        // Long after every file was written.
        START_TIME.after(Duration::from_secs(100 * 365 * 86_400))
    }
}

#[tokio::main]
async fn main() {
    notes().await;
    sessions().await;
}

async fn notes() {
    let (root, index) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
    let mut dice = Dice(1);
    std::fs::create_dir(root.path().join("memory")).unwrap();
    for file in 0..400 {
        let notes: Vec<String> = (0..25).map(|_| dice.text(40)).collect();
        let path = root.path().join(format!("memory/topic{file}.md"));
        std::fs::write(path, notes.join("\n\n")).unwrap();
    }
    let settings = Settings {
        index: index.path().to_owned(),
        keep_days: 0,
        expired: OnExpiry::Archive,
        soft_limit_bytes: 0,
    };
    let words = MarkdownMemory::new(settings.clone(), Arc::new(FixedClock));
    let began = Instant::now();
    search(&words, root.path(), QUERIES[0]).await;
    println!(
        "10,000 notes in 400 files: first search, which indexes them: {:.0?}",
        began.elapsed()
    );
    println!("search by words: {:.1?}", median_of_notes(&words, root.path()).await);
    let embedder = Arc::new(FakeEmbedder::new("fake", &[]));
    let both = MarkdownMemory::new(settings, Arc::new(FixedClock)).with_embedder(embedder.clone());
    let began = Instant::now();
    search(&both, root.path(), QUERIES[0]).await;
    while embedder.texts().len() < 10_000 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("storing 10,000 vectors in the background: {:.1?}", began.elapsed());
    while search(&both, root.path(), QUERIES[0]).await != SearchMethod::WordsAndMeaning {}
    println!("search by words and meaning: {:.1?}", median_of_notes(&both, root.path()).await);
    println!("index on disk: {:.1} MB", megabytes(index.path()));
}

async fn search(memory: &MarkdownMemory, root: &Path, text: &str) -> SearchMethod {
    let query = MemoryQuery { text: text.into(), kind: None, limit: None };
    memory.search(root, query).await.unwrap().method
}

async fn median_of_notes(memory: &MarkdownMemory, root: &Path) -> Duration {
    let mut times = Vec::new();
    for n in 0..60 {
        let began = Instant::now();
        search(memory, root, QUERIES[n % QUERIES.len()]).await;
        times.push(began.elapsed());
    }
    median(times)
}

/// A turn is a user message of 40 words, a tool result of 300 and an answer of 150.
async fn sessions() {
    let folder = tempfile::TempDir::new().unwrap();
    let index = MessageIndex::new(folder.path().join("search.db"), None);
    let mut dice = Dice(2);
    let (mut bytes, mut times) = (0, Vec::new());
    for turn in 0..1000_u64 {
        let session = SessionId::parse(&format!("session{}", turn / 20)).unwrap();
        let roles = [(Role::User, 40), (Role::Tool, 300), (Role::Assistant, 150)];
        let mut message = |(n, (role, words)): (u64, (Role, usize))| {
            let seq = turn % 20 * 3 + n + 1;
            let text = dice.text(words);
            bytes += text.len();
            let (turn, message) = (TurnId::parse("t"), MessageId::parse("m"));
            let (turn, message) = (turn.unwrap(), message.unwrap());
            IndexedMessage { seq, turn, message, role, at: START_TIME, text }
        };
        let messages = (0..3).zip(roles).map(&mut message).collect();
        let update = SessionUpdate {
            session,
            parent: None,
            title: "a title".into(),
            workspace: "/workspace".into(),
            position: turn % 20 * 3 + 3,
            messages,
        };
        let began = Instant::now();
        index.update(update).await.unwrap();
        times.push(began.elapsed());
    }
    let total: Duration = times.iter().sum();
    println!("indexing 1,000 turns, a transaction each: {total:.0?}, median {:.0?}", median(times));
    let (text, disk) = (bytes as f64 / 1e6, megabytes(folder.path()));
    println!("text {text:.1} MB, index on disk with its log {disk:.1} MB");
    let mut times = Vec::new();
    for n in 0..60 {
        let query = SessionQuery { text: QUERIES[n % QUERIES.len()].into(), limit: None };
        let began = Instant::now();
        index.search(query).await.unwrap();
        times.push(began.elapsed());
    }
    println!("search in 3,000 messages by words: {:.1?}", median(times));
    let began = Instant::now();
    index.remove(&SessionId::parse("session7").unwrap()).await.unwrap();
    println!("removing a session of 20 turns: {:.1?}", began.elapsed());
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn megabytes(folder: &Path) -> f64 {
    let files = folder.read_dir().unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum::<u64>() as f64 / 1e6
}
