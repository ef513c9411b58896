//! Tests of search: results, their order, and failures of the index.

use quintet_kernel::memory::{MemoryError, MemoryFile, MemoryQuery};
use quintet_kernel::port::Memory;

use crate::world::World;

#[tokio::test]
async fn the_best_match_comes_first() {
    let world = World::new();
    world.put(
        "memory/MEMORY.md",
        "# Travel\n\nPassport is in the blue drawer.\n\nTrains to Bern leave at nine.\n\n\
         # Food\n\nNo peanuts for Ada, ever.\n",
    );
    world.put("memory/2025-01-01.md", "Bought a blue bicycle.\n");
    let found = world.search_result("where is the blue passport?", None).await.unwrap();
    assert_eq!(
        (&*found[0].path, found[0].line_start, found[0].line_end),
        ("memory/MEMORY.md", 1, 3)
    );
    assert_eq!(found[0].excerpt, "# Travel\n\nPassport is in the blue drawer.");
    assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    assert!(found.iter().all(|found| (0.0..=1.0).contains(&found.score)));
    assert_eq!(world.places("travelling bern").await[0], "memory/MEMORY.md:5-5");
    assert_eq!(world.places("zeppelin").await, [""; 0]);
}

#[tokio::test]
async fn kinds_and_limits_are_respected() {
    let world = World::new();
    for n in 0..60 {
        world.put(&format!("memory/2024-{:02}-{:02}.md", n / 28 + 10, n % 28 + 1), "alpha note\n");
    }
    world.put("memory/MEMORY.md", "alpha for good\n");
    world.put("memory/people.md", "alpha Ada\n");
    world.put("MEMORY.md", "alpha at the top\n");
    let long_term = world.search_result("alpha", Some(MemoryFile::LongTerm)).await.unwrap();
    let mut paths: Vec<_> = long_term.iter().map(|found| &*found.path).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["MEMORY.md", "memory/MEMORY.md", "memory/people.md"]);
    let daily = world.search_result("alpha", Some(MemoryFile::Daily)).await.unwrap();
    assert_eq!(daily.len(), 8);
    // All match equally well, so the newest come first.
    assert_eq!(
        (&*daily[0].path, &*daily[1].path),
        ("memory/2024-12-04.md", "memory/2024-12-03.md")
    );
    for (asked, given) in [(0, 0), (1, 1), (50, 50), (1000, 50)] {
        let query = MemoryQuery { text: "alpha".into(), kind: None, limit: Some(asked) };
        let found = world.memory.search(world.folder.path(), query).await.unwrap();
        assert_eq!(found.passages.len(), given);
    }
}

#[tokio::test]
async fn edits_of_an_editor_are_found_at_once() {
    let world = World::new();
    world.note("the key is under the mat").await;
    assert_eq!(world.places("mat").await.len(), 1);
    // The same length, at nearly the same time.
    world.put("memory/MEMORY.md", "the key is under the cat\n");
    assert_eq!((world.places("mat").await.len(), world.places("cat").await.len()), (0, 1));
    world.put("memory/plans.md", "build a boat\n");
    assert_eq!(world.places("boat").await, ["memory/plans.md:1-1"]);
    std::fs::rename(world.path("memory/plans.md"), world.path("memory/dreams.md")).unwrap();
    assert_eq!(world.places("boat").await, ["memory/dreams.md:1-1"]);
    std::fs::remove_file(world.path("memory/dreams.md")).unwrap();
    assert_eq!(world.places("boat").await, [""; 0]);
}

#[tokio::test]
async fn settled_files_are_compared_by_fingerprint() {
    let world = World::new();
    // Long after everything that this test does.
    world.clock.set(quintet_kernel::Time::from_micros(4_000_000_000_000_000));
    world.put("memory/MEMORY.md", "one fish\n");
    assert_eq!(world.places("fish").await.len(), 1);
    world.put("memory/MEMORY.md", "one fish\n\ntwo fish\n");
    assert_eq!(world.places("fish").await, ["memory/MEMORY.md:1-1", "memory/MEMORY.md:3-3"]);
    world.put("memory/MEMORY.md", "\n\nred\n");
    assert_eq!(world.places("fish").await, [""; 0]);
    assert_eq!(world.places("red").await, ["memory/MEMORY.md:3-3"]);
}

#[tokio::test]
async fn the_index_may_be_lost_or_damaged() {
    let world = World::new();
    world.note("remember the milk").await;
    assert_eq!(world.places("milk").await.len(), 1);
    let index = world.index_file();
    std::fs::remove_dir_all(index.parent().unwrap()).unwrap();
    assert_eq!(world.places("milk").await.len(), 1);
    for damage in [&b"this is no database at all, though long enough to look like one"[..], b""] {
        std::fs::write(&index, damage).unwrap();
        assert_eq!(world.places("milk").await.len(), 1);
    }
    let mut bytes = std::fs::read(&index).unwrap();
    bytes[200..].fill(0xa5);
    std::fs::write(&index, bytes).unwrap();
    assert_eq!(world.places("milk").await.len(), 1);
    // An unusable folder makes searches slower, but does not fail them.
    std::fs::remove_dir_all(index.parent().unwrap()).unwrap();
    std::fs::write(index.parent().unwrap(), "in the way").unwrap();
    assert_eq!(world.places("milk").await.len(), 1);
}

#[tokio::test]
async fn no_query_is_a_syntax_error() {
    let world = World::new();
    world.note("plain words about NEAR and AND, 100% sure; it's a \"quote\" (really) *").await;
    let hostile = [
        "\"",
        "'",
        "\"unclosed",
        "AND",
        "OR OR",
        "NOT",
        "NEAR(",
        "NEAR(a b, 5)",
        "a AND",
        "* *",
        "^plain",
        "col:plain",
        "body:plain",
        "-plain",
        "{a b}:c",
        "plain*",
        "(",
        ")",
        "+",
        "a + b",
        "; DROP TABLE passages; --",
        "\0",
        "a\0b",
        "%",
        "\\",
        "\u{feff}",
        "\u{202e}x",
        "🎉",
        "…",
        "ﷺ",
        "\u{d7ff}\u{10ffff}",
    ];
    for text in hostile {
        world.search_result(text, None).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
    }
    assert_eq!(world.places("NEAR(AND)").await.len(), 1);
    assert_eq!(world.places("100%").await.len(), 1);
    let long = "word ".repeat(3000);
    assert!(world.search_result(&long, None).await.is_ok());
    for bad in ["", " \t\n", &"x".repeat(20_000)] {
        assert!(matches!(world.search_result(bad, None).await, Err(MemoryError::BadQuery(_))));
    }
}

#[tokio::test]
async fn every_script_can_be_searched() {
    let world = World::new();
    world.put(
        "memory/MEMORY.md",
        "昨日の会議は東京で行われた\n\nПривет из Москвы\n\nCafé Größe naïve\n\n서울에서 만나요\n\n\
         🎉🎉 !!!\n\nsnake_case_name in src/lib.rs\n",
    );
    let cases = [
        ("東京", 1),
        ("会議はどこ", 1),
        ("москвы", 3),
        ("cafe grosse", 5),
        ("NAI\u{308}VE", 5),
        ("서울", 7),
        ("🎉", 9),
        ("!!!", 9),
        ("case_name", 11),
        ("lib.rs", 11),
    ];
    for (query, line) in cases {
        let found = world.search_result(query, None).await.unwrap();
        assert_eq!(found.first().map(|found| found.line_start), Some(line), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn searches_and_writes_run_concurrently() {
    let world = World::new();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..24 {
        let (memory, root) = (world.memory.clone(), world.folder.path().to_owned());
        tasks.spawn(async move {
            let text = format!("fact{n} is true");
            let entry = quintet_kernel::memory::MemoryEntry::new(MemoryFile::Daily, text);
            memory.write(&root, entry).await.unwrap();
            let query = MemoryQuery { text: format!("fact{n}"), kind: None, limit: None };
            assert_eq!(memory.search(&root, query).await.unwrap().passages.len(), 1);
        });
    }
    tasks.join_all().await;
}
