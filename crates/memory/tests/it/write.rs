//! Tests of writing entries.

use std::time::Duration;

use quintet_kernel::memory::{MemoryEntry, MemoryError, MemoryFile};
use quintet_kernel::port::Memory;
use quintet_testkit::clock::START_TIME;

use crate::world::World;

#[tokio::test]
async fn entries_are_separated_and_their_lines_reported() {
    let world = World::new();
    let first = world.note("likes tea").await;
    let second = world.note("\n\nlives in\r\nBern\n\n").await;
    assert_eq!(world.text("memory/MEMORY.md"), "likes tea\n\nlives in\nBern\n");
    assert_eq!((first.path.as_str(), first.line_start, first.line_end), ("memory/MEMORY.md", 1, 1));
    assert_eq!((second.line_start, second.line_end), (3, 4));
    let passage = world.get(&second.path, second.line_start, second.line_end).await.unwrap();
    assert_eq!(passage.text, "lives in\nBern");
}

#[tokio::test]
async fn every_day_has_its_file() {
    let world = World::new();
    let today = world.write(MemoryFile::Daily, "rain").await.unwrap();
    world.clock.set(START_TIME.after(Duration::from_secs(24 * 60 * 60)));
    let tomorrow = world.write(MemoryFile::Daily, "sun").await.unwrap();
    assert_eq!((&*today.path, &*tomorrow.path), ("memory/2025-01-01.md", "memory/2025-01-02.md"));
    assert_eq!(world.text("memory/2025-01-01.md"), "rain\n");
}

#[tokio::test]
async fn text_of_people_is_kept() {
    for (left, expected) in [
        ("mine", "mine\n\nnew\n"),
        ("mine\n", "mine\n\nnew\n"),
        ("mine\n\n", "mine\n\nnew\n"),
        ("", "new\n"),
    ] {
        let world = World::new();
        world.put("memory/MEMORY.md", left);
        world.note("new").await;
        assert_eq!(world.text("memory/MEMORY.md"), expected, "{left:?}");
    }
}

#[tokio::test]
async fn an_entry_that_may_be_repeated_is_written_once() {
    let world = World::new();
    let entry = MemoryEntry {
        once: Some(START_TIME),
        ..MemoryEntry::new(MemoryFile::Daily, "- decided: use tabs")
    };
    let first = world.memory.write(world.folder.path(), entry.clone()).await.unwrap();
    world.clock.set(START_TIME.after(Duration::from_secs(50 * 60 * 60)));
    world.write(MemoryFile::Daily, "later").await.unwrap();
    let again = world.memory.write(world.folder.path(), entry).await.unwrap();
    assert_eq!(first, again);
    assert_eq!(world.text("memory/2025-01-01.md"), "- decided: use tabs\n");
    // A part of a line is not an entry.
    let part = MemoryEntry {
        once: Some(START_TIME),
        ..MemoryEntry::new(MemoryFile::Daily, "- decided: use")
    };
    world.memory.write(world.folder.path(), part).await.unwrap();
    assert_eq!(world.text("memory/2025-01-01.md"), "- decided: use tabs\n\n- decided: use\n");
}

#[tokio::test]
async fn invalid_entries_are_refused() {
    let world = World::new();
    for bad in ["", " \n\t\r\n", "a\0b"] {
        let refused = world.write(MemoryFile::LongTerm, bad).await.unwrap_err();
        assert!(matches!(refused, MemoryError::BadEntry(_)), "{bad:?}: {refused}");
    }
    let huge = world.write(MemoryFile::Daily, &"x".repeat(65 * 1024)).await.unwrap_err();
    assert!(matches!(huge, MemoryError::TooLarge { .. }), "{huge}");
    assert!(!world.path("memory").exists());
}

#[tokio::test]
async fn writing_to_a_long_file_returns_a_warning() {
    let world = World::new();
    assert_eq!(world.note(&"x".repeat(900)).await.warning, None);
    let warning = world.note(&"y".repeat(200)).await.warning.unwrap();
    assert!(warning.contains("1103 bytes, more than the 1000"), "{warning}");
    let daily = world.write(MemoryFile::Daily, &"z".repeat(2000)).await.unwrap();
    assert_eq!(daily.warning, None);
    let silent = World::with(|settings| settings.soft_limit_bytes = 0);
    assert_eq!(silent.note(&"x".repeat(5000)).await.warning, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_lose_and_mix_nothing() {
    let world = World::new();
    let other = quintet_memory::MarkdownMemory::new(
        crate::world::settings(world.folder.path()),
        world.clock.clone(),
    );
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..40 {
        let memory = if n % 2 == 0 { world.memory.clone() } else { other.clone() };
        let (root, text) = (world.folder.path().to_owned(), format!("start {n}\n{n} end"));
        writers.spawn(async move {
            memory.write(&root, MemoryEntry::new(MemoryFile::LongTerm, text)).await.unwrap()
        });
    }
    let written = writers.join_all().await;
    let text = world.text("memory/MEMORY.md");
    let mut entries: Vec<&str> = text.trim_end().split("\n\n").collect();
    let mut expected: Vec<String> = (0..40).map(|n| format!("start {n}\n{n} end")).collect();
    entries.sort_unstable();
    expected.sort_unstable();
    assert_eq!(entries, expected);
    let mut lines: Vec<u64> = written.iter().map(|written| written.line_start).collect();
    lines.sort_unstable();
    assert_eq!(lines, (0..40).map(|n| n * 3 + 1).collect::<Vec<_>>());
}
