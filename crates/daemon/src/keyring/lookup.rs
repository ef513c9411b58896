//! The keys that were found in the keyring, and the reasons for missing ones.

use std::collections::BTreeMap;

use quintet_providers::Secret;

use super::KeyringError;

#[derive(Debug, Default)]
pub(crate) struct KeyringKeys {
    keys: BTreeMap<String, Secret>,
    gaps: Vec<(String, KeyringError)>,
}

impl KeyringKeys {
    pub(super) fn nothing(names: &[String], trouble: &KeyringError) -> Self {
        let gaps = names.iter().map(|name| (name.clone(), trouble.clone())).collect();
        Self { gaps, ..Self::default() }
    }

    pub(crate) fn add(&mut self, name: &str, key: Result<String, KeyringError>) {
        match key {
            Ok(key) => {
                self.keys.insert(name.into(), Secret::new(key));
            }
            Err(trouble) => self.gaps.push((name.into(), trouble)),
        }
    }

    pub(crate) fn key(&self, name: &str) -> Option<&Secret> {
        self.keys.get(name)
    }

    /// The names whose keys were found.
    pub(crate) fn names(&self) -> Vec<String> {
        self.keys.keys().cloned().collect()
    }

    /// The missing keys: a line per reason with a remedy.
    pub(crate) fn warnings(&self) -> Vec<(String, &'static str)> {
        let mut reasons: Vec<(&KeyringError, Vec<&str>)> = Vec::new();
        for (name, trouble) in &self.gaps {
            match reasons.iter_mut().find(|(known, _)| *known == trouble) {
                Some((_, names)) => names.push(name),
                None => reasons.push((trouble, vec![name])),
            }
        }
        let line = |(trouble, names): (&KeyringError, Vec<&str>)| {
            (format!("no key for {}: {trouble}", names.join(", ")), trouble.remedy())
        };
        reasons.into_iter().map(line).collect()
    }
}
