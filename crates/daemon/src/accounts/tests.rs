//! Tests of users' keys: their storage, and errors if they cannot be read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use quintet_stores::{DataDir, memory};
use serde_json::json;
use tokio::sync::Barrier;
use tokio::time::timeout;

use super::*;

const KEY: &str = "sk-anns-very-own-key";

struct World {
    dir: tempfile::TempDir,
    store: Arc<memory::MemoryStore>,
}

impl World {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), store: Arc::default() }
    }

    fn keys(&self) -> UserKeys {
        let vault = Arc::new(Vault::new(self.dir.path()));
        let settings = EncryptedSettings::new(self.store.clone(), Arc::clone(&vault));
        UserKeys { settings: Arc::new(settings), vault }
    }

    /// The stored settings.
    async fn stored(&self, name: &str) -> Value {
        self.store.preference("windie", name).await.unwrap().unwrap()
    }
}

fn settings(key: &str) -> Value {
    json!({ "provider_api_keys": { "openai": { "enabled": true, "api_key": key } } })
}

async fn key(keys: &UserKeys, name: &str) -> Result<Option<String>, String> {
    let account = Account { space: "windie".into(), name: name.into() };
    let key = keys.key(&account, ["openai", "openai"]).await?;
    Ok(key.map(|key| key.reveal().to_owned()))
}

#[tokio::test]
async fn a_key_is_encrypted_and_decrypted() {
    let world = World::new();
    let keys = world.keys();
    keys.settings.set_preference("windie", "ann", settings(KEY)).await.unwrap();
    assert!(!world.stored("ann").await.to_string().contains(KEY));
    assert_eq!(key(&keys, "ann").await, Ok(Some(KEY.into())));
    // Settings that are read and written back stay unchanged.
    let read = keys.settings.preference("windie", "ann").await.unwrap().unwrap();
    keys.settings.set_preference("windie", "ann", read.clone()).await.unwrap();
    assert_eq!(world.stored("ann").await, read);
    assert_eq!(key(&world.keys(), "ann").await, Ok(Some(KEY.into())));
    // The encrypted key cannot be used for another user.
    world.store.set_preference("windie", "bob", read).await.unwrap();
    assert!(key(&keys, "bob").await.is_err());
}

#[tokio::test]
async fn a_key_in_clear_text_can_be_used() {
    let world = World::new();
    world.store.set_preference("windie", "ann", settings(KEY)).await.unwrap();
    let keys = world.keys();
    let read = keys.settings.preference("windie", "ann").await.unwrap().unwrap();
    assert!(!read.to_string().contains(KEY));
    assert_eq!(key(&keys, "ann").await, Ok(Some(KEY.into())));
}

/// A user's key that is as long as those of providers.
fn long_key(user: usize, version: usize) -> String {
    format!("sk-{user}-{version}-{}", "k".repeat(157))
}

/// The files below a folder that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    let holds = |path: &PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    };
    files.filter(holds).collect()
}

#[tokio::test]
async fn a_start_encrypts_all_old_keys_and_erases_them() {
    let home = tempfile::tempdir().unwrap();
    let dir = DataDir::open(home.path()).unwrap();
    drop(dir.sqlite().unwrap());
    // Earlier versions had large pages, which contain a key in one piece.
    let database = rusqlite::Connection::open(home.path().join("quintet.db")).unwrap();
    let enlarge = "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM;";
    database.execute_batch(enlarge).unwrap();
    drop(database);
    let store = Arc::new(dir.sqlite().unwrap());
    let user = |n: usize| format!("user{n}");
    // As an older version wrote them: each was replaced once, and the replaced one stayed in the
    // file.
    let database = rusqlite::Connection::open(home.path().join("quintet.db")).unwrap();
    database.query_row("PRAGMA secure_delete = OFF", [], |_| Ok(())).unwrap();
    let set = "INSERT OR REPLACE INTO preferences (space, name, value) VALUES ('windie', ?1, ?2)";
    for (n, version) in (0..6).flat_map(|n| [(n, 0), (n, 1)]) {
        let value = settings(&long_key(n, version)).to_string();
        database.execute(set, [user(n), value]).unwrap();
    }
    // Inserted and deleted rows move others.
    for n in 0..200 {
        database
            .execute(set, [format!("aside{n}"), settings(&"x".repeat(3000)).to_string()])
            .unwrap();
    }
    database.execute("DELETE FROM preferences WHERE name LIKE 'aside%'", []).unwrap();
    drop(database);
    assert_eq!(long_key(0, 0).len(), 164);
    assert_ne!(holding(home.path(), &long_key(0, 1)), [] as [PathBuf; 0]);
    let vault = Arc::new(Vault::new(home.path()));
    let sealed = Arc::new(EncryptedSettings::new(store.clone(), Arc::clone(&vault)));
    sealed.encrypt_old_keys(async || store.vacuum().await).await.unwrap();
    for (n, version) in (0..6).flat_map(|n| [(n, 0), (n, 1)]) {
        let found = holding(home.path(), &long_key(n, version));
        assert_eq!(found, [] as [PathBuf; 0], "user {n}, version {version}");
    }
    let keys = UserKeys { settings: sealed.clone(), vault };
    assert_eq!(key(&keys, "user5").await, Ok(Some(long_key(5, 1))));
    // The second start has nothing to encrypt.
    let before = store.preference("windie", "user0").await.unwrap();
    sealed.encrypt_old_keys(async || store.vacuum().await).await.unwrap();
    assert_eq!(store.preference("windie", "user0").await.unwrap(), before);
}

#[tokio::test]
async fn a_burst_of_settings_shares_a_commit() {
    const USERS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(OneCommit(Barrier::new(USERS)));
    let sealed = EncryptedSettings::new(store, Arc::new(Vault::new(dir.path())));
    let user = |n: usize| (format!("user{n}"), settings(KEY));
    let burst = (0..USERS).map(user).map(|(name, value)| {
        let sealed = &sealed;
        async move { sealed.set_preference("windie", &name, value).await }
    });
    let kept = timeout(Duration::from_secs(60), futures_util::future::try_join_all(burst)).await;
    kept.expect("all are queued before the first is durable").unwrap();
}

/// Storage that commits only when this many changes are queued.
struct OneCommit(Barrier);

impl Preferences for OneCommit {
    fn preference(&self, _: &str, _: &str) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        Box::pin(async { Ok(None) })
    }

    fn names(&self, _: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn set_preference(
        &self,
        _: &str,
        _: &str,
        _: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(async {
            self.0.wait().await;
            Ok(())
        })
    }

    fn replace(
        &self,
        _: &str,
        _: &str,
        _: Option<Value>,
        _: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        unreachable!("settings are kept whatever was there")
    }
}

#[tokio::test]
async fn processes_that_create_the_key_at_once_share_it() {
    let dir = tempfile::tempdir().unwrap();
    let seal = |n: usize| {
        let vault = Vault::new(dir.path());
        async move { vault.seal(&format!("key {n}"), "test").await.unwrap() }
    };
    let sealed = futures_util::future::join_all((0..8).map(seal)).await;
    for (n, sealed) in sealed.iter().enumerate() {
        let opened = Vault::new(dir.path()).open(sealed, "test").await;
        assert_eq!(opened.unwrap(), format!("key {n}"));
    }
}

#[tokio::test]
async fn without_the_vaults_key_no_turn_runs() {
    let world = World::new();
    world.keys().settings.set_preference("windie", "ann", settings(KEY)).await.unwrap();
    let file = world.dir.path().join("users.key");
    let whole = std::fs::read(&file).unwrap();
    for (damage, says) in [
        (None, ["is missing", "users.key from a backup, or enter the keys again"]),
        (Some(&b"nonsense"[..]), ["holds no key", "users.key and enter the keys again"]),
        (Some(&b"keyring gone\n"[..]), ["keyring", "users.key and enter the keys again"]),
        (
            Some(&b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"[..]),
            ["another key", "enter the key again"],
        ),
    ] {
        match damage {
            None => std::fs::remove_file(&file).unwrap(),
            Some(damage) => std::fs::write(&file, damage).unwrap(),
        }
        let keys = world.keys();
        let error = key(&keys, "ann").await.unwrap_err();
        assert!(error.contains("your key for openai cannot be read"), "{error}");
        says.iter().for_each(|says| assert!(error.contains(says), "{says}: {error}"));
        std::fs::write(&file, &whole).unwrap();
        // The next attempt may find the key.
        assert_eq!(key(&world.keys(), "ann").await, Ok(Some(KEY.into())));
    }
    world.store.set_preference("windie", "ann", json!("nonsense")).await.unwrap();
    assert!(key(&world.keys(), "ann").await.unwrap_err().contains("cannot be used"));
}

#[tokio::test]
async fn the_daemons_key_is_used_only_if_the_settings_say_so() {
    let world = World::new();
    world.store.set_preference("windie", "ann", json!({ "provider_api_keys": {} })).await.unwrap();
    assert_eq!(key(&world.keys(), "ann").await, Ok(None));
    assert!(key(&world.keys(), "gone").await.unwrap_err().contains("cannot be used"));
    let secret = json!({ "provider_api_keys": { "openai": KEY } });
    world.store.set_preference("windie", "ann", secret).await.unwrap();
    let error = key(&world.keys(), "ann").await.unwrap_err();
    assert!(error.contains("cannot be used") && !error.contains(KEY), "{error}");
}
