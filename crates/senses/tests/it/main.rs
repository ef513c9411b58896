//! Integration tests with the real models, whose weights are in the user's cache.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod embedding;
mod reading;
mod voice;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use quintet_senses::{Settings, weights};
use quintet_weights::{Progress, Registries, pull};

fn settings() -> Settings {
    // Tests run concurrently, and threads that wait for each other would slow them all down.
    Settings { models_dir: models_dir(), idle: Duration::from_secs(600), threads: 1 }
}

/// The user's models directory; missing weights are downloaded once and not for every clone.
fn models_dir() -> PathBuf {
    static READY: OnceLock<PathBuf> = OnceLock::new();
    let fetch = || {
        let environment: Vec<(String, String)> = std::env::vars().collect();
        let get = |name: &str| environment.iter().find(|(key, _)| key == name).map(|(_, dir)| dir);
        let cache = get("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(PathBuf::from(get("HOME")?).join(".cache"))).unwrap();
        let dir = cache.join("quintet/models");
        let registries = Registries::new(&environment);
        let threads = tokio::runtime::Runtime::new().unwrap();
        for row in weights::all() {
            threads.block_on(pull(row.model(), &dir, &registries, &Stderr)).unwrap();
        }
        dir
    };
    // A runtime cannot run inside a test's own.
    READY.get_or_init(|| std::thread::spawn(fetch).join().unwrap()).clone()
}

struct Stderr;

impl Progress for Stderr {
    fn line(&self, text: &str) {
        eprintln!("{text}");
    }

    fn bytes(&self, _: u64, _: u64) {}
}
