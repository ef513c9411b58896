//! Tests of the sections in the system prompt.

use quintet_kernel::port::Memory;

use crate::world::World;

async fn titles(world: &World, tokens: u64) -> Vec<(String, usize)> {
    let sections = world.memory.bootstrap(world.folder.path(), tokens).await;
    sections.into_iter().map(|section| (section.title, section.text.len())).collect()
}

#[tokio::test]
async fn existing_files_are_shown_in_order() {
    let world = World::new();
    assert!(titles(&world, 1000).await.is_empty());
    for path in [
        "USER.md",
        "TOOLS.md",
        "MEMORY.md",
        "memory/MEMORY.md",
        "memory/2024-12-31.md",
        "memory/2025-01-01.md",
        "memory/2024-12-30.md",
        "memory/other.md",
        "AGENTS.md",
    ] {
        world.put(path, "words\n");
    }
    world.put("TOOLS.md", " \n");
    let expected = [
        "USER.md",
        "MEMORY.md",
        "memory/MEMORY.md",
        "memory/2024-12-31.md",
        "memory/2025-01-01.md",
    ];
    assert_eq!(titles(&world, 1000).await, expected.map(|title| (title.to_owned(), 6)));
}

#[tokio::test]
async fn the_budget_is_respected_and_the_newest_notes_are_kept() {
    let world = World::new();
    let lines = |name: &str| (0..200).map(|n| format!("{name} {n}\n")).collect::<String>();
    world.put("USER.md", "Ada\n");
    world.put("memory/MEMORY.md", lines("fact"));
    world.put("memory/2025-01-01.md", lines("note"));
    for tokens in [0, 1, 20, 100, 300] {
        let total: usize = titles(&world, tokens).await.iter().map(|(_, bytes)| bytes).sum();
        assert!(total as u64 <= tokens * 4, "{total} bytes in {tokens} tokens");
    }
    let sections = world.memory.bootstrap(world.folder.path(), 300).await;
    let text = |title: &str| &*sections.iter().find(|section| section.title == title).unwrap().text;
    assert_eq!(text("USER.md"), "Ada\n");
    assert!(text("memory/MEMORY.md").starts_with("fact 0\n"));
    assert!(text("memory/MEMORY.md").ends_with("fact 199\n"));
    assert!(text("memory/2025-01-01.md").starts_with('['));
    assert!(text("memory/2025-01-01.md").ends_with("note 199\n"));
}
