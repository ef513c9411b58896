//! Tests of reading lines, and of paths outside of memory.

use std::os::unix::fs::symlink;

use quintet_kernel::memory::{LineRange, MemoryError, MemoryFile};
use quintet_kernel::port::Memory;
use tempfile::TempDir;

use crate::world::World;

#[tokio::test]
async fn lines_are_counted_from_one() {
    let world = World::new();
    world.put("memory/MEMORY.md", "erste Zeile\nzweite: Grüße 🎉\r\n日本語\n\nfünfte");
    let cases = [
        (1, 1, "erste Zeile", (1, 1)),
        (2, 3, "zweite: Grüße 🎉\n日本語", (2, 3)),
        (0, 1, "erste Zeile", (1, 1)),
        (4, 99, "\nfünfte", (4, 5)),
        (6, 9, "", (6, 5)),
        (3, 2, "", (3, 2)),
        (u64::MAX, u64::MAX, "", (u64::MAX, u64::MAX - 1)),
    ];
    for (first, last, text, lines) in cases {
        let passage = world.get("memory/MEMORY.md", first, last).await.unwrap();
        assert_eq!((&*passage.text, passage.lines), (text, 5), "{first}-{last}");
        assert_eq!((passage.line_start, passage.line_end), lines, "{first}-{last}");
    }
    let all = world.memory.get(world.folder.path(), "./memory/MEMORY.md", LineRange::ALL).await;
    assert_eq!(all.unwrap().line_end, 5);
}

#[tokio::test]
async fn missing_files_and_files_outside_memory_are_refused() {
    let world = World::new();
    world.put("secret.md", "no");
    world.put("memory/folder.md/x", "");
    for path in ["memory/2025-01-01.md", "memory/folder.md", "MEMORY.md"] {
        let refused = world.get(path, 1, 9).await.unwrap_err();
        assert!(matches!(refused, MemoryError::NotFound(_)), "{path}: {refused}");
    }
    for path in ["secret.md", "memory/../secret.md", "/etc/passwd", "memory/x.txt", "", "memory"] {
        let refused = world.get(path, 1, 9).await.unwrap_err();
        assert!(matches!(refused, MemoryError::Outside(_)), "{path}: {refused}");
    }
}

#[tokio::test]
async fn no_link_is_followed() {
    let world = World::new();
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret.md"), "password zebra").unwrap();
    world.put("memory/real.md", "zebra at home");
    symlink(outside.path().join("secret.md"), world.path("memory/link.md")).unwrap();
    symlink("real.md", world.path("memory/MEMORY.md")).unwrap();
    symlink(outside.path(), world.path("memory/archive")).unwrap();
    for path in ["memory/link.md", "memory/MEMORY.md", "memory/archive/secret.md"] {
        let refused = world.get(path, 1, 9).await.unwrap_err();
        assert!(matches!(refused, MemoryError::Outside(_)), "{path}: {refused}");
    }
    assert_eq!(world.places("zebra password").await, ["memory/real.md:1-1"]);
    let refused = world.write(MemoryFile::LongTerm, "x").await.unwrap_err();
    assert!(matches!(refused, MemoryError::Outside(_)), "{refused}");
    assert_eq!(world.text("memory/real.md"), "zebra at home");
}

#[tokio::test]
async fn a_folder_that_is_a_link_is_not_memory() {
    let world = World::new();
    let outside = TempDir::new().unwrap();
    symlink(outside.path(), world.path("memory")).unwrap();
    let refused = [
        world.write(MemoryFile::Daily, "x").await.map(|_| ()).unwrap_err(),
        world.search_result("x", None).await.map(|_| ()).unwrap_err(),
        world.get("memory/MEMORY.md", 1, 1).await.map(|_| ()).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, MemoryError::Outside(_)), "{error}");
    }
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
}

#[tokio::test]
async fn a_huge_file_is_skipped() {
    let world = World::new();
    world.put("memory/MEMORY.md", vec![b'x'; 9 * 1024 * 1024]);
    world.put("memory/other.md", "needle\n");
    let refused = [
        world.write(MemoryFile::LongTerm, "x").await.map(|_| ()).unwrap_err(),
        world.get("memory/MEMORY.md", 1, 1).await.map(|_| ()).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, MemoryError::TooLarge { .. }), "{error}");
    }
    assert_eq!(world.places("needle").await, ["memory/other.md:1-1"]);
    world.put("memory/long.md", "line\n".repeat(100_000));
    let refused = world.get("memory/long.md", 1, 99_999).await.unwrap_err();
    assert!(matches!(refused, MemoryError::TooLarge { .. }), "{refused}");
    assert_eq!(world.get("memory/long.md", 50_000, 50_001).await.unwrap().text, "line\nline");
}

#[tokio::test]
async fn a_missing_workspace_is_reported() {
    let world = World::new();
    let gone = world.path("nowhere");
    let refused = world.memory.get(&gone, "memory/MEMORY.md", LineRange::ALL).await.unwrap_err();
    assert!(matches!(refused, MemoryError::NotFound(_)), "{refused}");
    assert!(world.memory.bootstrap(&gone, 100).await.is_empty());
}
