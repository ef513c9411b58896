//! Memory is written, searched and read by models, and told to them from the start.

use quintet_kernel::tool::Risk;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_model_writes_searches_and_reads() {
    let bench = Bench::remembering(0);
    let write = json!({ "content": "Ada likes tea", "target": "long_term" });
    assert_eq!(bench.tell("memory_write", write).await, "added to memory/MEMORY.md, lines 1-1");
    let daily = json!({ "content": "bought tea\nand milk" });
    assert_eq!(bench.tell("memory_write", daily).await, "added to memory/2025-01-01.md, lines 1-2");
    let found = bench.tell("memory_search", json!({ "query": "milk?" })).await;
    assert!(found.starts_with("memory/2025-01-01.md, lines 1-2 (score "), "{found}");
    let end =
        "):\nbought tea\nand milk\n\n[search: words; not configured: set `senses.embeddings`]";
    assert!(found.ends_with(end), "{found}");
    let long_term = json!({ "query": "tea", "kind": "long_term", "limit": 1 });
    assert!(bench.tell("memory_search", long_term).await.contains("Ada likes tea"));
    let none = bench.tell("memory_search", json!({ "query": "zebra" })).await;
    assert!(none.starts_with("nothing is remembered about that\n\n[search: words; "), "{none}");
    let get = json!({ "path": "memory/2025-01-01.md", "start_line": 2, "end_line": 9 });
    assert_eq!(bench.tell("memory_get", get).await, "and milk\n[lines 2-2 of 2]\n");
    let get = json!({ "path": "memory/MEMORY.md" });
    assert_eq!(bench.tell("memory_get", get).await, "Ada likes tea\n");
    let get = json!({ "path": "memory/MEMORY.md", "start_line": 7 });
    assert_eq!(bench.tell("memory_get", get).await, "memory/MEMORY.md has 1 line");
}

#[tokio::test]
async fn what_goes_wrong_is_said() {
    let bench = Bench::remembering(0);
    bench.write("secret.md", "no");
    let cases = [
        ("memory_get", json!({ "path": "secret.md" }), "! path is outside of memory: secret.md"),
        ("memory_get", json!({ "path": "memory/x.md" }), "! no such memory file: memory/x.md"),
        ("memory_write", json!({ "content": " " }), "! bad entry: it is empty"),
        ("memory_search", json!({ "query": " " }), "! bad query: it is empty"),
    ];
    for (tool, input, said) in cases {
        assert_eq!(bench.tell(tool, input).await, said);
    }
    let wrong = bench.tell("memory_write", json!({ "content": "x", "target": "nowhere" })).await;
    assert!(wrong.starts_with("! ") && wrong.contains("target"), "{wrong}");
    let long = json!({ "content": "x".repeat(50), "target": "long_term" });
    let warned = bench.tell("memory_write", long).await;
    assert!(
        warned.contains("\nwarning: memory/MEMORY.md has 51 bytes, more than the 40"),
        "{warned}"
    );
}

#[tokio::test]
async fn a_person_sees_what_would_be_written() {
    let bench = Bench::remembering(0);
    let write = json!({ "content": "one\ntwo", "target": "long_term" });
    let assessment = bench.assess("memory_write", write).await;
    assert_eq!((assessment.risk, assessment.reversible), (Risk::Low, true));
    assert_eq!(assessment.preview, "memory/MEMORY.md\n+one\n+two\n");
    assert_eq!(assessment.subject.paths, ["memory/MEMORY.md"]);
    assert_eq!(assessment.subject.similar.as_deref(), Some("adds to memory"));
    let get = bench.assess("memory_get", json!({ "path": "memory/a.md" })).await;
    assert_eq!((get.preview.as_str(), &*get.subject.paths[0]), ("read memory/a.md", "memory/a.md"));
    let search = bench.assess("memory_search", json!({ "query": "tea" })).await;
    assert_eq!(search.preview, "look for \"tea\" in memory");
    assert!(!bench.path().join("memory").exists());
}

#[tokio::test]
async fn memory_is_part_of_the_context_within_its_budget() {
    let bench = Bench::remembering(100);
    bench.files(&[
        ("AGENTS.md", "Be kind.\n"),
        ("USER.md", "Ada\n"),
        ("memory/MEMORY.md", "likes tea\n"),
        ("memory/2024-12-31.md", "was tired\n"),
        ("memory/2024-12-30.md", "long ago\n"),
    ]);
    let told = bench.survey(bench.path(), 1100).await;
    let start = "AGENTS.md:\nBe kind.\nUSER.md:\nAda\nmemory/MEMORY.md:\nlikes tea\n\
                 memory/2024-12-31.md:\nwas tired\nREPO TREE:\n";
    assert!(told.starts_with(start), "{told}");
    let little = bench.survey(bench.path(), 220).await;
    assert!(little.starts_with("AGENTS.md:\nBe kind.\nUSER.md:\nAda\n"), "{little}");
    assert!(little.contains("REPO TREE:"), "what there is to say is said in small, too: {little}");
    bench.write("memory/MEMORY.md", "likes coffee\n");
    assert!(bench.survey(bench.path(), 1100).await.contains("likes coffee"));
}

#[tokio::test]
async fn without_memory_there_are_no_tools_for_it() {
    assert!(Bench::new().tools().iter().all(|name| !name.starts_with("memory_")));
    let tools = Bench::remembering(0).tools();
    let memory: Vec<_> = tools.iter().filter(|name| name.starts_with("memory_")).collect();
    assert_eq!(memory, ["memory_search", "memory_get", "memory_write"]);
}
