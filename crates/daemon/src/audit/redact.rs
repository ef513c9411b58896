//! Redacts secrets in logged values.

use quintet_providers::Secret;
use serde_json::Value;

/// The replacement of a secret.
const HIDDEN: &str = "***";
/// Maximum length of a text, in bytes.
const TEXT_BYTES_LIMIT: usize = 2000;

/// Words in the name of an argument with a secret value.
const NAMES: [&str; 13] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "otp",
    "pincode",
];

/// The prefixes of well-known keys, and their minimum lengths.
const STARTS: [(&str, usize); 14] = [
    ("sk-", 16),
    ("pk_live_", 16),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 20),
    ("AIza", 30),
    ("eyJ", 40),
];

/// Redacts secrets in logged values.
#[derive(Debug)]
pub(super) struct Redactor {
    secrets: Vec<Secret>,
}

impl Redactor {
    pub(super) fn new(secrets: Vec<Secret>) -> Self {
        Self { secrets }
    }

    /// A value without secrets, with its texts shortened.
    pub(super) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let member = |(name, value): (&String, &Value)| {
                    if is_secret(name) {
                        (name.clone(), Value::String(HIDDEN.into()))
                    } else {
                        (name.clone(), self.value(value))
                    }
                };
                Value::Object(members.iter().map(member).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    /// A shortened text without secrets. Secrets are replaced before the cut, so that no part of one remains.
    pub(super) fn text(&self, text: &str) -> String {
        let known = self.secrets.iter().fold(text.to_owned(), |text, secret| secret.redact(text));
        let mut hidden = without_keys(&known);
        if hidden.len() > TEXT_BYTES_LIMIT {
            hidden.truncate(hidden.floor_char_boundary(TEXT_BYTES_LIMIT));
            hidden.push('…');
        }
        hidden
    }
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    NAMES.iter().any(|word| plain.contains(word))
}

/// Replaces text that looks like a key: by its prefix, or after a word that precedes keys.
fn without_keys(text: &str) -> String {
    if text.contains("PRIVATE KEY-----") {
        return HIDDEN.into();
    }
    let mut out = String::with_capacity(text.len());
    let mut announced = false;
    for word in text.split_inclusive(|c: char| !is_key(c)) {
        let key = word.trim_end_matches(|c: char| !is_key(c));
        let rest = &word[key.len()..];
        let secret = !key.is_empty() && (announced || looks_like_key(key));
        out.push_str(if secret { HIDDEN } else { key });
        out.push_str(rest);
        announced =
            if key.is_empty() { announced && rest.trim().len() < 2 } else { announces(key, rest) };
    }
    out
}

fn is_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '~')
}

fn looks_like_key(word: &str) -> bool {
    STARTS.iter().any(|(start, least)| word.len() >= *least && word.starts_with(start))
}

/// `Bearer x`, `password=x`, `--token x`.
fn announces(word: &str, after: &str) -> bool {
    let bearer = word.eq_ignore_ascii_case("bearer");
    let named = is_secret(word) && (after.starts_with(['=', ':']) || word.starts_with('-'));
    bearer || named
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, hidden: &str) {
        let redactor = Redactor::new(vec![Secret::new("very-own-key")]);
        assert_eq!(redactor.text(text), hidden);
    }

    #[test]
    fn keys_are_hidden_and_words_are_not() {
        check("echo hello world", "echo hello world");
        check("use very-own-key here", "use *** here");
        check("sk-abcdefghijklmnop0123 and sk-x", "*** and sk-x");
        check("curl -H 'Authorization: Bearer abc.def'", "curl -H 'Authorization: *** ***'");
        check("login --password hunter2 now", "login --password *** now");
        check("API_TOKEN=abc make", "API_TOKEN=*** make");
        check("the token of a ring", "the token of a ring");
        check("ü ghp_0123456789abcdefghij ü", "ü *** ü");
        check("-----BEGIN PRIVATE KEY-----\nabc", "***");
    }

    #[test]
    fn arguments_are_hidden_by_their_names() {
        let redactor = Redactor::new(Vec::new());
        let given = json!({ "user": "me", "Password": "x", "deep": [{ "api_key": { "a": 1 } }] });
        let hidden = json!({ "user": "me", "Password": "***", "deep": [{ "api_key": "***" }] });
        assert_eq!(redactor.value(&given), hidden);
    }

    #[test]
    fn long_texts_are_shortened() {
        let cut = Redactor::new(Vec::new()).text(&"é ".repeat(5000));
        assert!(cut.len() <= TEXT_BYTES_LIMIT + '…'.len_utf8(), "{}", cut.len());
    }
}
