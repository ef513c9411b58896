//! Data of front ends other than sessions, in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    Artifact, Artifacts, BoxFuture, ERASED_SPACE, Install, Installs, Preferences, StorageError,
};
use quintet_kernel::time::Time;
use serde_json::Value;

use super::MemoryStore;
use crate::lock;

/// Installs, preferences and artifacts.
#[derive(Debug, Default)]
pub(super) struct FrontEnds {
    installs: Vec<Install>,
    preferences: HashMap<(String, String), Value>,
    artifacts: BTreeMap<String, Artifact>,
    claims: BTreeSet<(String, SessionId)>,
}

impl FrontEnds {
    /// A fork inherits the artifact claims of its parent.
    pub(super) fn inherit(&mut self, parent: &SessionId, fork: &SessionId) {
        let claims = self.claims.iter().filter(|(_, session)| session == parent);
        let inherited: Vec<_> =
            claims.map(|(artifact, _)| (artifact.clone(), fork.clone())).collect();
        self.claims.extend(inherited);
    }

    /// Removes the claims of a deleted session.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.claims.retain(|(_, claimed)| claimed != session);
    }

    /// Records that a session was deleted, for components that keep copies.
    pub(super) fn note_erased(&mut self, session: &SessionId) {
        self.preferences.insert((ERASED_SPACE.into(), session.to_string()), true.into());
    }

    fn is_claimed(&self, artifact: &str) -> bool {
        self.claims.iter().any(|(claimed, _)| claimed == artifact)
    }
}

impl Installs for MemoryStore {
    fn register(&self, install: Install) -> BoxFuture<'_, Result<(), StorageError>> {
        let installs = &mut lock(&self.contents).front_ends.installs;
        let taken = |known: &Install| known.id == install.id || known.token == install.token;
        if installs.iter().any(taken) {
            let taken = StorageError::Unavailable(format!("there is an install {}", install.id));
            return Box::pin(ready(Err(taken)));
        }
        installs.push(install);
        Box::pin(ready(Ok(())))
    }

    fn find_by_token(&self, token: &str) -> BoxFuture<'_, Result<Option<Install>, StorageError>> {
        let contents = lock(&self.contents);
        let mut installs = contents.front_ends.installs.iter();
        Box::pin(ready(Ok(installs.find(|install| install.token == token).cloned())))
    }

    fn touch(&self, id: &str, at: Time) -> BoxFuture<'_, Result<(), StorageError>> {
        let installs = &mut lock(&self.contents).front_ends.installs;
        if let Some(install) = installs.iter_mut().find(|install| install.id == id) {
            install.seen = at;
        }
        Box::pin(ready(Ok(())))
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Install>, StorageError>> {
        let mut installs = lock(&self.contents).front_ends.installs.clone();
        installs.sort_by_key(|install| install.created);
        Box::pin(ready(Ok(installs)))
    }

    fn revoke(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>> {
        let installs = &mut lock(&self.contents).front_ends.installs;
        let before = installs.len();
        installs.retain(|install| install.id != id);
        Box::pin(ready(Ok(installs.len() < before)))
    }
}

impl Preferences for MemoryStore {
    fn preference(
        &self,
        space: &str,
        name: &str,
    ) -> BoxFuture<'_, Result<Option<Value>, StorageError>> {
        let key = (space.to_owned(), name.to_owned());
        Box::pin(ready(Ok(lock(&self.contents).front_ends.preferences.get(&key).cloned())))
    }

    fn names(&self, space: &str) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        let contents = lock(&self.contents);
        let keys = contents.front_ends.preferences.keys().filter(|(of, _)| of == space);
        Box::pin(ready(Ok(keys.map(|(_, name)| name.clone()).collect())))
    }

    fn set_preference(
        &self,
        space: &str,
        name: &str,
        value: Value,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let key = (space.to_owned(), name.to_owned());
        let preferences = &mut lock(&self.contents).front_ends.preferences;
        match value {
            Value::Null => preferences.remove(&key),
            value => preferences.insert(key, value),
        };
        Box::pin(ready(Ok(())))
    }

    fn replace(
        &self,
        space: &str,
        name: &str,
        expected: Option<Value>,
        value: Value,
    ) -> BoxFuture<'_, Result<bool, StorageError>> {
        let key = (space.to_owned(), name.to_owned());
        let preferences = &mut lock(&self.contents).front_ends.preferences;
        let same = preferences.get(&key) == expected.as_ref();
        if same {
            preferences.insert(key, value);
        }
        Box::pin(ready(Ok(same)))
    }
}

impl Artifacts for MemoryStore {
    fn add(&self, artifact: Artifact) -> BoxFuture<'_, Result<(), StorageError>> {
        lock(&self.contents).front_ends.artifacts.insert(artifact.id.clone(), artifact);
        Box::pin(ready(Ok(())))
    }

    fn artifact(&self, id: &str) -> BoxFuture<'_, Result<Option<Artifact>, StorageError>> {
        Box::pin(ready(Ok(lock(&self.contents).front_ends.artifacts.get(id).cloned())))
    }

    fn claim(&self, id: &str, session: &SessionId) -> BoxFuture<'_, Result<bool, StorageError>> {
        let front_ends = &mut lock(&self.contents).front_ends;
        let there = front_ends.artifacts.contains_key(id);
        if there {
            front_ends.claims.insert((id.into(), session.clone()));
        }
        Box::pin(ready(Ok(there)))
    }

    fn unclaimed(&self, before: Time) -> BoxFuture<'_, Result<Vec<Artifact>, StorageError>> {
        let front_ends = &lock(&self.contents).front_ends;
        let artifacts = front_ends.artifacts.values();
        let old = artifacts.filter(|artifact| artifact.created < before);
        let mut old: Vec<Artifact> =
            old.filter(|artifact| !front_ends.is_claimed(&artifact.id)).cloned().collect();
        old.sort_by_key(|artifact| artifact.created);
        Box::pin(ready(Ok(old)))
    }

    fn discard(&self, id: &str) -> BoxFuture<'_, Result<bool, StorageError>> {
        let front_ends = &mut lock(&self.contents).front_ends;
        let free = !front_ends.is_claimed(id);
        Box::pin(ready(Ok(free && front_ends.artifacts.remove(id).is_some())))
    }
}
