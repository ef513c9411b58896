//! Tests of retention of daily notes.

use std::time::Duration;

use quintet_memory::OnExpiry;
use quintet_testkit::clock::START_TIME;

use crate::world::World;

fn with_notes(keep_days: u64, expired: OnExpiry) -> World {
    let world = World::with(|settings| {
        settings.keep_days = keep_days;
        settings.expired = expired;
    });
    for day in ["2024-12-20", "2024-12-22", "2024-12-31", "2025-01-01"] {
        world.put(&format!("memory/{day}.md"), format!("notes of {day}\n"));
    }
    world.put("memory/MEMORY.md", "notes for good\n");
    world
}

#[tokio::test]
async fn old_notes_are_archived_and_can_still_be_read() {
    let world = with_notes(10, OnExpiry::Archive);
    assert_eq!(world.places("notes").await.len(), 4);
    assert!(!world.path("memory/2024-12-20.md").exists());
    let old = world.get("memory/archive/2024-12-20.md", 1, 9).await.unwrap();
    assert_eq!(old.text, "notes of 2024-12-20");
    world.clock.set(START_TIME.after(Duration::from_secs(5 * 24 * 60 * 60)));
    // Archived files are never overwritten.
    world.put("memory/archive/2024-12-22.md", "older\n");
    assert_eq!(world.places("notes").await.len(), 4);
    assert_eq!(world.text("memory/archive/2024-12-22.md"), "older\n");
    assert_eq!(world.text("memory/2024-12-22.md"), "notes of 2024-12-22\n");
}

#[tokio::test]
async fn old_notes_are_deleted_only_if_configured() {
    let world = with_notes(10, OnExpiry::Remove);
    assert_eq!(world.places("notes").await.len(), 4);
    assert!(!world.path("memory/2024-12-20.md").exists() && !world.path("memory/archive").exists());
    let for_ever = with_notes(0, OnExpiry::Remove);
    assert_eq!(for_ever.places("notes").await.len(), 5);
}
