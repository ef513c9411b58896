//! Users' keys: what is kept of them, and what happens if they cannot be read.

use quintet_stores::memory;
use serde_json::json;

use super::*;

const KEY: &str = "sk-anns-very-own-key";

struct World {
    dir: tempfile::TempDir,
    store: Arc<memory::Store>,
}

impl World {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), store: Arc::default() }
    }

    fn keys(&self) -> UserKeys {
        let vault = Arc::new(Vault::new(self.dir.path()));
        let settings = SealedSettings::new(self.store.clone(), Arc::clone(&vault));
        UserKeys { settings: Arc::new(settings), vault }
    }

    /// What is really kept.
    async fn kept(&self, name: &str) -> Value {
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
async fn a_key_is_encrypted_and_found_again() {
    let world = World::new();
    let keys = world.keys();
    keys.settings.prefer("windie", "ann", settings(KEY)).await.unwrap();
    assert!(!world.kept("ann").await.to_string().contains(KEY));
    assert_eq!(key(&keys, "ann").await, Ok(Some(KEY.into())));
    // What is read and written back stays what it is.
    let read = keys.settings.preference("windie", "ann").await.unwrap().unwrap();
    keys.settings.prefer("windie", "ann", read.clone()).await.unwrap();
    assert_eq!(world.kept("ann").await, read);
    assert_eq!(key(&world.keys(), "ann").await, Ok(Some(KEY.into())));
    // It is of no use to anybody else.
    world.store.prefer("windie", "bob", read).await.unwrap();
    assert!(key(&keys, "bob").await.is_err());
}

#[tokio::test]
async fn a_key_in_clear_text_is_encrypted_when_it_is_read() {
    let world = World::new();
    world.store.prefer("windie", "ann", settings(KEY)).await.unwrap();
    assert_eq!(key(&world.keys(), "ann").await, Ok(Some(KEY.into())));
    assert!(!world.kept("ann").await.to_string().contains(KEY));
}

#[tokio::test]
async fn without_what_it_was_encrypted_with_nobody_pays() {
    let world = World::new();
    world.keys().settings.prefer("windie", "ann", settings(KEY)).await.unwrap();
    let file = world.dir.path().join("users.key");
    let whole = std::fs::read(&file).unwrap();
    for (damage, says) in [
        (None, "is missing"),
        (Some(&b"nonsense"[..]), "holds no key"),
        (Some(&b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"[..]), "another key"),
    ] {
        match damage {
            None => std::fs::remove_file(&file).unwrap(),
            Some(damage) => std::fs::write(&file, damage).unwrap(),
        }
        let keys = world.keys();
        let error = key(&keys, "ann").await.unwrap_err();
        assert!(error.contains("own key for openai cannot be read") && error.contains(says));
        std::fs::write(&file, &whole).unwrap();
        // The next try may find it.
        assert_eq!(key(&world.keys(), "ann").await, Ok(Some(KEY.into())));
    }
    world.store.prefer("windie", "ann", json!("nonsense")).await.unwrap();
    assert!(key(&world.keys(), "ann").await.unwrap_err().contains("so nobody pays"));
}

#[tokio::test]
async fn the_daemon_pays_only_for_users_whose_settings_say_so() {
    let world = World::new();
    world.store.prefer("windie", "ann", json!({ "provider_api_keys": {} })).await.unwrap();
    assert_eq!(key(&world.keys(), "ann").await, Ok(None));
    assert!(key(&world.keys(), "gone").await.unwrap_err().contains("so nobody pays"));
    let secret = json!({ "provider_api_keys": { "openai": KEY } });
    world.store.prefer("windie", "ann", secret).await.unwrap();
    let error = key(&world.keys(), "ann").await.unwrap_err();
    assert!(error.contains("so nobody pays") && !error.contains(KEY), "{error}");
}
