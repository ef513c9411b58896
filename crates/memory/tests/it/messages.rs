//! Tests of searching the messages of sessions.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::Seq;
use quintet_kernel::memory::SearchMethod;
use quintet_kernel::message::Role;
use quintet_kernel::port::{
    SearchError, SenseError, SessionHit, SessionHits, SessionQuery, SessionSearch, StorageError,
};
use quintet_kernel::{MessageId, SessionId, Time, TurnId};
use quintet_memory::{IndexedMessage, MessageIndex, SessionUpdate};
use quintet_testkit::fake_embedder::FakeEmbedder;
use tempfile::TempDir;

struct World {
    folder: TempDir,
    index: MessageIndex,
}

impl World {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(embedder: Option<Arc<FakeEmbedder>>) -> Self {
        let folder = TempDir::new().unwrap();
        let index = open(&folder, embedder);
        Self { folder, index }
    }

    /// Adds messages to a session, numbered from its position on.
    async fn add(&self, session: &str, messages: &[(Role, &str)]) {
        self.add_fork(session, None, messages).await;
    }

    async fn add_fork(&self, id: &str, parent: Option<&str>, messages: &[(Role, &str)]) {
        let first = self.index.position(&session(id)).await.unwrap().unwrap_or(0) + 1;
        let messages: Vec<_> = messages
            .iter()
            .zip(first..)
            .map(|((role, text), seq)| message(seq, *role, text))
            .collect();
        let update = SessionUpdate {
            session: session(id),
            parent: parent.map(session),
            title: format!("about {id}"),
            workspace: "/home/me".into(),
            position: first + messages.len() as u64 - 1,
            messages,
        };
        self.index.update(update).await.unwrap();
    }

    async fn search(&self, text: &str) -> SessionHits {
        let query = SessionQuery { text: text.into(), limit: None };
        self.index.search(query).await.unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    /// The results, as `session.seq`.
    async fn places(&self, text: &str) -> Vec<String> {
        let hits = self.search(text).await.hits;
        hits.iter().map(|hit| format!("{}.{}", hit.session, hit.seq)).collect()
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("search.db")
    }
}

fn open(folder: &TempDir, embedder: Option<Arc<FakeEmbedder>>) -> MessageIndex {
    let embedder = embedder.map(|embedder| embedder as Arc<dyn quintet_kernel::port::Embedder>);
    MessageIndex::new(folder.path().join("search.db"), embedder)
}

fn session(id: &str) -> SessionId {
    SessionId::parse(id).unwrap()
}

fn message(seq: Seq, role: Role, text: &str) -> IndexedMessage {
    IndexedMessage {
        seq,
        turn: TurnId::parse("t1").unwrap(),
        message: MessageId::parse(&format!("m{seq}")).unwrap(),
        role,
        at: Time::from_micros(1_000_000),
        text: text.into(),
    }
}

fn marked(hit: &SessionHit) -> String {
    let mut text = hit.excerpt.clone();
    for range in hit.matches.iter().rev() {
        text.insert(range.end, ']');
        text.insert(range.start, '[');
    }
    text
}

#[tokio::test]
async fn messages_of_all_sessions_and_authors_are_found() {
    let world = World::new();
    let words = [
        (Role::User, "please mend the login page"),
        (Role::Assistant, "I looked at it.\nThe page needed a token; pages have one now."),
        (Role::Tool, "src/login.rs: 12 lines"),
    ];
    world.add("one", &words).await;
    world.add("two", &[(Role::User, "the weather page")]).await;
    let found = world.search("login page").await;
    assert_eq!(found.method.reason(), Some("not configured: set `senses.embeddings`"));
    let hit = &found.hits[0];
    assert_eq!((hit.session.as_str(), hit.seq, hit.role), ("one", 1, Role::User));
    assert_eq!((&*hit.title, hit.workspace.to_str()), ("about one", Some("/home/me")));
    assert_eq!((hit.turn.as_str(), hit.message.as_str(), hit.at.micros()), ("t1", "m1", 1_000_000));
    assert_eq!(marked(hit), "please mend the [login] [page]");
    assert_eq!(found.hits.len(), 4, "some of the words suffice");
    assert!(found.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
    let answer = world.search("tokens").await.hits;
    assert_eq!(marked(&answer[0]), "The page needed a [token]; pages have one now.");
    assert_eq!(world.places("login.rs").await[0], "one.3");
    assert_eq!(world.places("zeppelin").await, [""; 0]);
}

#[tokio::test]
async fn a_session_does_not_hide_the_others() {
    let world = World::new();
    let many = [(Role::User, "tea"); 30];
    world.add("tea", &many).await;
    world.add("other", &[(Role::User, "there was also tea at the very long meeting")]).await;
    let found = world.places("tea").await;
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found.last().map(String::as_str), Some("other.1"));
    for (limit, count) in [(0, 0), (2, 2), (usize::MAX, 4)] {
        let query = SessionQuery { text: "tea".into(), limit: Some(limit) };
        assert_eq!(world.index.search(query).await.unwrap().hits.len(), count);
    }
}

#[tokio::test]
async fn no_query_is_a_syntax_error() {
    let world = World::new();
    world.add("one", &[(Role::User, "plain words, 100% sure; a \"quote\" 🎉 東京で会議")]).await;
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
        "body:plain",
        "-plain",
        "{a b}:c",
        "plain*",
        "(",
        ")",
        "+",
        "a + b",
        "\0",
        "a\0b",
        "%",
        "\\",
        "\u{feff}",
        "🎉🎉",
        "…",
        "'; DROP TABLE messages; --",
    ];
    for text in hostile {
        world.search(text).await;
    }
    for text in ["plain*", "body:plain", "\"quote", "100%", "🎉", "東京", "words AND plain"] {
        assert_eq!(world.places(text).await, ["one.1"], "{text:?}");
    }
    assert_eq!(marked(&world.search("🎉").await.hits[0]).matches("[🎉]").count(), 1);
    for bad in ["", " \t\n", &"x".repeat(20_000)] {
        let query = SessionQuery { text: bad.into(), limit: None };
        let refused = world.index.search(query).await;
        assert!(matches!(refused, Err(SearchError::BadQuery(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_removed_session_leaves_nothing_behind() {
    let world = World::new();
    let secret = "the xylophonist lives in Ouagadougou";
    world.add("keep", &[(Role::User, "the weather is fine")]).await;
    for n in 0..50 {
        let text = format!("{secret} number{n}");
        world.add("gone", &[(Role::User, &text), (Role::Tool, "weather report")]).await;
    }
    assert_eq!(world.places("xylophonist").await.len(), 3);
    assert_eq!(world.index.remove(&session("gone")).await.unwrap(), []);
    assert_eq!(world.places("xylophonist").await, [""; 0]);
    assert_eq!(world.places("weather").await, ["keep.1"]);
    assert_eq!(world.index.position(&session("gone")).await.unwrap(), None);
    let db = rusqlite::Connection::open(world.file()).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let bytes = std::fs::read(world.file()).unwrap();
    for word in ["xylophon", "ouagadougou", "Ouagadougou", "number4"] {
        let there = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!there, "{word} is still in the file");
    }
    let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[tokio::test]
async fn forks_of_a_removed_session_are_emptied_and_returned() {
    let world = World::new();
    world.add("old", &[(Role::User, "shared words")]).await;
    world.add_fork("fork", Some("old"), &[(Role::User, "words of its own")]).await;
    world.add_fork("other", Some("fork"), &[(Role::User, "more words")]).await;
    assert_eq!(world.index.remove(&session("old")).await.unwrap(), [session("fork")]);
    assert_eq!(world.places("words").await, ["other.1"]);
    assert_eq!(world.index.sessions_to_reindex().await.unwrap(), [session("fork")]);
    world.add("fork", &[(Role::User, "shared words"), (Role::User, "words of its own")]).await;
    assert_eq!(world.places("shared own").await, ["fork.1", "fork.2"]);
    assert_eq!(world.index.sessions_to_reindex().await.unwrap(), []);
    assert_eq!(world.index.remove(&session("never")).await.unwrap(), []);
}

#[tokio::test]
async fn positions_are_stored_and_messages_are_indexed_once() {
    let world = World::new();
    assert_eq!(world.index.since().await.unwrap(), Time::default());
    world.add("one", &[(Role::User, "first"), (Role::User, "second")]).await;
    world.index.checkpoint(Time::from_micros(7)).await.unwrap();
    let again = open(&world.folder, None);
    assert_eq!(again.since().await.unwrap(), Time::from_micros(7));
    assert_eq!(again.position(&session("one")).await.unwrap(), Some(2));
    let update = SessionUpdate {
        session: session("one"),
        parent: None,
        title: "a better title".into(),
        workspace: "/elsewhere".into(),
        position: 3,
        messages: vec![message(2, Role::User, "second"), message(3, Role::User, "third")],
    };
    again.update(update).await.unwrap();
    assert_eq!(world.places("second").await, ["one.2"]);
    assert_eq!(world.places("third").await, ["one.3"]);
    assert_eq!(world.search("first").await.hits[0].title, "a better title");
}

#[tokio::test]
async fn a_damaged_index_is_rebuilt() {
    let world = World::new();
    let query = SessionQuery { text: "x".into(), limit: None };
    let missing = world.index.search(query).await;
    assert!(matches!(missing, Err(SearchError::Storage(_))), "{missing:?}");
    for damage in [&b"this is no database, though it is long enough to look like one"[..], b""] {
        std::fs::write(world.file(), damage).unwrap();
        let index = open(&world.folder, None);
        assert_eq!(index.since().await.unwrap(), Time::default());
        drop(index);
    }
    let world = World::new();
    world.add("one", &[(Role::User, "words")]).await;
    drop(
        rusqlite::Connection::open(world.file())
            .unwrap()
            .execute_batch("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)"),
    );
    let index = open(&world.folder, None);
    assert_eq!(index.position(&session("one")).await.unwrap(), None);
}

#[tokio::test]
async fn an_index_that_is_damaged_during_use_is_rebuilt_at_the_next_start() {
    let world = World::new();
    let many = vec![(Role::User, "words of some length to fill a page or two"); 400];
    world.add("one", &many).await;
    world.index.checkpoint(Time::from_micros(7)).await.unwrap();
    let db = rusqlite::Connection::open(world.file()).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    // Another process may still have it open; what it reads is damaged from now on.
    let query = "SELECT rootpage FROM sqlite_schema WHERE name = 'meta'";
    let root: u32 = db.query_row(query, [], |row| row.get(0)).unwrap();
    let page: u32 = db.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    let (junk, place) = (vec![0xa5; page as usize], u64::from((root - 1) * page));
    let file = std::fs::OpenOptions::new().write(true).open(world.file()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &junk, place).unwrap();
    db.execute("UPDATE meta SET since = since", []).unwrap_err();
    drop(db);
    let index = open(&world.folder, None);
    let damaged = index.checkpoint(Time::from_micros(8)).await;
    assert!(matches!(damaged, Err(StorageError::Damaged(_))), "{damaged:?}");
    let later = index.checkpoint(Time::from_micros(9)).await;
    assert!(matches!(later, Err(StorageError::Damaged(_))), "{later:?}");
    assert_eq!(open(&world.folder, None).since().await.unwrap(), Time::default());
}

#[tokio::test(start_paused = true)]
async fn messages_are_found_by_meaning() {
    let embedder = Arc::new(FakeEmbedder::new("one", &[&["car", "automobile"]]));
    let world = World::with(Some(Arc::clone(&embedder)));
    world.add("one", &[(Role::User, "wash the automobile"), (Role::Tool, "automobile.rs")]).await;
    let before = world.search("car").await;
    assert_eq!(before.method.reason(), Some("the messages have no vectors yet"));
    let index = world.index.clone();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { index.compute_vectors().await });
    until(&world, "car", &["one.1"]).await;
    assert_eq!(world.search("car").await.method, SearchMethod::WordsAndMeaning);
    // Messages that are added later are embedded later, and output of tools never.
    world.add("two", &[(Role::Assistant, "my automobile is red"), (Role::Tool, "red")]).await;
    until(&world, "red car", &["two.1", "two.2", "one.1"]).await;
    let texts = embedder.texts();
    assert!(!texts.iter().any(|text| text == "automobile.rs"), "{texts:?}");
    embedder.set_failure(Some(SenseError::Failed("out of memory".into())));
    let failed = world.search("red").await;
    assert_eq!((failed.hits.len(), failed.method.reason()), (2, Some("out of memory")));
    embedder.set_failure(None);
    tasks.shutdown().await;
    // Another model embeds all messages again.
    let other = Arc::new(FakeEmbedder::new("two", &[]));
    let index = open(&world.folder, Some(Arc::clone(&other)));
    tasks.spawn(async move { index.compute_vectors().await });
    for _ in 0..20_000 {
        if other.texts().len() == 2 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{:?}", other.texts());
}

async fn until(world: &World, query: &str, expected: &[&str]) {
    for _ in 0..1000 {
        if world.places(query).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{query}: {:?}", world.places(query).await);
}

#[tokio::test]
async fn an_error_is_distinguished_from_a_missing_folder() {
    let world = World::new();
    std::fs::remove_dir(world.folder.path()).unwrap();
    let refused = world.index.since().await;
    assert!(matches!(refused, Err(StorageError::Unavailable(_))), "{refused:?}");
}
