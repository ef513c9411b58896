//! Tests of searching notes by meaning.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::memory::{MemoryFile, SearchMethod};
use quintet_kernel::port::SenseError;
use quintet_testkit::fake_embedder::FakeEmbedder;

use crate::world::World;

/// Polls of 5 ms each; many, because the machine may be busy.
const POLLS_LIMIT: usize = 20_000;

fn synonyms(model: &str) -> Arc<FakeEmbedder> {
    Arc::new(FakeEmbedder::new(model, &[&["car", "automobile"], &["doctor", "physician"]]))
}

/// Searches until `notes` texts are embedded and the result is ranked by meaning.
async fn until_embedded(world: &World, embedder: &FakeEmbedder, notes: usize) {
    for _ in 0..POLLS_LIMIT {
        let embedded = embedder.texts().iter().filter(|text| *text != "anything").count();
        let result = world.search("anything", None).await.unwrap();
        if embedded >= notes && result.method == SearchMethod::WordsAndMeaning {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the vectors are never computed: {:?}", embedder.texts());
}

fn reason(method: &SearchMethod) -> &str {
    assert_eq!(method.name(), "words");
    method.reason().unwrap()
}

#[tokio::test]
async fn synonyms_are_found() {
    let mut world = World::new();
    let embedder = synonyms("one");
    world.embed_with(&embedder);
    world.put(
        "memory/MEMORY.md",
        "# Garage\n\nThe automobile is red.\n\nBicycles are blue.\n\nThe physician has a blue door.\n",
    );
    world.put("memory/2025-01-01.md", "Washed the automobile.\n");
    // The first search does not wait.
    let first = world.search("car", None).await.unwrap();
    assert_eq!((first.passages, reason(&first.method)), (vec![], "the notes have no vectors yet"));
    until_embedded(&world, &embedder, 4).await;
    assert_eq!(world.places("red car").await[0], "memory/MEMORY.md:1-3");
    // A passage that matches by words and meaning comes before those that match by one.
    assert_eq!(world.places("blue door of the doctor").await[0], "memory/MEMORY.md:7-7");
    let daily = world.search_result("car", Some(MemoryFile::Daily)).await.unwrap();
    assert_eq!(
        daily.iter().map(|found| &*found.path).collect::<Vec<_>>(),
        ["memory/2025-01-01.md"]
    );
    let found = world.search_result("physician door", None).await.unwrap();
    assert!(found.iter().all(|found| (0.0..=1.0).contains(&found.score)), "{found:?}");
    assert!(found[0].score > 0.95, "{found:?}");
    assert_eq!(world.places("zeppelin").await, [""; 0]);
}

#[tokio::test]
async fn only_changed_passages_are_embedded_again() {
    let mut world = World::new();
    let embedder = synonyms("one");
    world.embed_with(&embedder);
    world.put("memory/MEMORY.md", "first fact\n\nsecond fact\n");
    world.put("memory/other.md", "another file\n");
    until_embedded(&world, &embedder, 3).await;
    world.put("memory/MEMORY.md", "a new line\n\nfirst fact\n\nsecond fact, changed\n");
    until_embedded(&world, &embedder, 5).await;
    let mut texts: Vec<_> =
        embedder.texts().into_iter().filter(|text| text != "anything").collect();
    texts.sort_unstable();
    assert_eq!(
        texts,
        ["a new line", "another file", "first fact", "second fact", "second fact, changed"]
    );
    // After a restart nothing is embedded again.
    world.embed_with(&embedder);
    let again = world.search("anything", None).await.unwrap();
    assert_eq!(again.method, SearchMethod::WordsAndMeaning);
    assert_eq!(embedder.texts().iter().filter(|text| *text != "anything").count(), 5);
}

#[tokio::test]
async fn another_model_needs_new_vectors() {
    let mut world = World::new();
    let one = synonyms("one");
    world.embed_with(&one);
    world.put("memory/MEMORY.md", "the automobile\n");
    until_embedded(&world, &one, 1).await;
    let two = Arc::new(FakeEmbedder::new("two", &[]));
    world.embed_with(&two);
    let result = world.search("car", None).await.unwrap();
    assert_eq!(reason(&result.method), "the notes have no vectors yet");
    until_embedded(&world, &two, 1).await;
    assert_eq!(world.places("car").await, [""; 0], "this model has no synonyms");
    world.embed_with(&one);
    until_embedded(&world, &one, 2).await;
    assert_eq!(world.places("car").await, ["memory/MEMORY.md:1-1"]);
}

#[tokio::test(start_paused = true)]
async fn no_search_fails_or_waits_because_of_the_embedder() {
    let mut world = World::new();
    let embedder = synonyms("one");
    world.put("memory/MEMORY.md", "the automobile\n");
    let off = world.search("automobile", None).await.unwrap();
    assert_eq!(reason(&off.method), "not configured: set `senses.embeddings`");
    world.embed_with(&embedder);
    embedder.set_unready(Some(SenseError::MissingWeights("embeddings")));
    let missing = world.search("automobile", None).await.unwrap();
    let expected = "the weights are missing: run `quintet models pull embeddings`";
    assert_eq!((missing.passages.len(), reason(&missing.method)), (1, expected));
    assert_eq!(embedder.texts(), [""; 0]);
    embedder.set_unready(None);
    until_embedded(&world, &embedder, 1).await;
    embedder.set_failure(Some(SenseError::Failed("out of memory".into())));
    let failed = world.search("automobile", None).await.unwrap();
    assert_eq!((failed.passages.len(), reason(&failed.method)), (1, "out of memory"));
    embedder.hang();
    let late = world.search("automobile", None).await.unwrap();
    let expected = "the embedder did not answer in time";
    assert_eq!((late.passages.len(), reason(&late.method)), (1, expected));
}

#[tokio::test]
async fn an_entry_is_embedded_without_a_search() {
    let mut world = World::new();
    let embedder = synonyms("one");
    world.embed_with(&embedder);
    world.note("the automobile is red").await;
    for _ in 0..POLLS_LIMIT {
        if embedder.texts() == ["the automobile is red"] {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{:?}", embedder.texts());
}
