//! The table of configuration keys.

use std::borrow::Cow;

use quintet_dialects::DIALECTS;
use quintet_dialects::dialect::{OptionSpec, Shape};

/// The name of a value type in messages.
pub(super) fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Text | Shape::Secret | Shape::Path => "a string",
        Shape::Flag => "true or false",
        Shape::Number => "a whole number",
        Shape::List => "a list of strings",
        Shape::Tables => "a list of tables",
    }
}

/// Every key: the daemon's own and those of the protocols.
pub(super) fn all() -> impl Iterator<Item = &'static OptionSpec> {
    KEYS.iter().chain(DIALECTS.iter().flat_map(|dialect| dialect.options))
}

/// The keys below `[listen]`, with their defaults.
pub(super) fn listen() -> impl Iterator<Item = (String, &'static str)> {
    let listeners = DIALECTS.iter().flat_map(|dialect| dialect.listeners);
    listeners.map(|listener| (format!("listen.{}", listener.name), listener.default))
}

/// The keys of the daemon itself.
const KEYS: &[OptionSpec] = &[
    ("data_dir", Shape::Path, None),
    ("store.url", Shape::Secret, None),
    ("store.blobs", Shape::Text, None),
    ("store.blob_limit_kib", Shape::Number, Some("1024")),
    ("store.s3_access_key", Shape::Secret, None),
    ("store.s3_secret_key", Shape::Secret, None),
    ("node.name", Shape::Text, None),
    ("node.advertise", Shape::Text, None),
    ("node.lease_seconds", Shape::Number, Some("10")),
    ("node.shared_workspaces", Shape::List, Some("[]")),
    ("node.token", Shape::Secret, None),
    ("default_model", Shape::Text, None),
    ("auth.token", Shape::Secret, None),
    ("auth.origins", Shape::List, Some("[]")),
    ("models.fallback", Shape::List, Some("[]")),
    ("providers.*.vendor", Shape::Text, None),
    ("providers.*.api", Shape::Text, None),
    ("providers.*.base_url", Shape::Text, None),
    ("providers.*.api_key", Shape::Secret, None),
    ("providers.*.api_key_env", Shape::Text, None),
    ("providers.*.api_key_keyring", Shape::Flag, None),
    ("providers.*.models", Shape::List, None),
    ("providers.*.inputs", Shape::List, None),
    ("providers.*.tools", Shape::Flag, None),
    ("providers.*.context_window", Shape::Number, None),
    ("providers.*.retries", Shape::Number, None),
    ("providers.*.idle_timeout_seconds", Shape::Number, None),
    ("providers.*.total_timeout_seconds", Shape::Number, None),
    ("providers.*.max_completion_tokens", Shape::Flag, None),
    ("providers.*.stream_options", Shape::Flag, None),
    ("providers.*.thoughts_back", Shape::Flag, None),
    ("providers.*.short_ids", Shape::Flag, None),
    ("providers.*.effort", Shape::Text, None),
    ("providers.*.headers", Shape::List, None),
    ("local.models_dir", Shape::Path, None),
    ("local.context", Shape::Number, Some("8192")),
    ("local.idle_seconds", Shape::Number, Some("600")),
    ("local.threads", Shape::Number, None),
    ("senses.embeddings", Shape::Text, Some("\"local\"")),
    ("senses.embedding_url", Shape::Text, None),
    ("senses.embedding_key", Shape::Secret, None),
    ("senses.embedding_dimensions", Shape::Number, None),
    ("senses.ocr", Shape::Text, Some("\"local\"")),
    ("senses.vision", Shape::Text, Some("\"off\"")),
    ("senses.transcription", Shape::Text, Some("\"local\"")),
    ("senses.realtime_session_model", Shape::Text, None),
    ("senses.nova_url", Shape::Text, None),
    ("senses.speech", Shape::Text, Some("\"local\"")),
    ("senses.voice", Shape::Text, Some("\"alloy\"")),
    ("senses.idle_seconds", Shape::Number, Some("300")),
    ("senses.threads", Shape::Number, None),
    ("approval.kinds", Shape::List, Some("[\"write\", \"exec\"]")),
    ("approval.tools", Shape::List, Some("[]")),
    ("approval.on_deny", Shape::Text, Some("\"continue\"")),
    ("approval.expires_seconds", Shape::Number, None),
    ("rules.*.action", Shape::Text, None),
    ("rules.*.kind", Shape::Text, None),
    ("rules.*.tool", Shape::Text, None),
    ("rules.*.path", Shape::Text, None),
    ("rules.*.command", Shape::Text, None),
    ("rules.*.reason", Shape::Text, None),
    ("context.tokens", Shape::Number, Some("4000")),
    ("memory.enabled", Shape::Flag, Some("true")),
    ("memory.index", Shape::Path, None),
    ("memory.tokens", Shape::Number, Some("2000")),
    ("memory.keep_days", Shape::Number, Some("90")),
    ("memory.expired", Shape::Text, Some("\"archive\"")),
    ("memory.soft_limit_bytes", Shape::Number, Some("32768")),
    ("memory.save_before_compaction", Shape::Flag, Some("true")),
    ("verify.auto", Shape::Flag, Some("true")),
    ("verify.commands", Shape::List, Some("[\"make test\"]")),
    ("verify.attempts", Shape::Number, Some("3")),
    ("sandbox.mode", Shape::Text, Some("\"require\"")),
    ("sandbox.network", Shape::Flag, Some("false")),
    ("sandbox.read", Shape::List, Some("[]")),
    ("sandbox.write", Shape::List, Some("[]")),
    ("undo.limit_bytes", Shape::Number, Some("8589934592")),
    ("tools.spawn_agent", Shape::Flag, Some("true")),
    ("subagents.depth", Shape::Number, Some("2")),
    ("subagents.at_once", Shape::Number, Some("8")),
    ("subagents.steps", Shape::Number, None),
    ("subagents.tokens", Shape::Number, None),
    ("subagents.seconds", Shape::Number, None),
    ("tools.fetch_url", Shape::Flag, Some("false")),
    ("tools.fetch_private", Shape::List, Some("[]")),
    ("search.api", Shape::Text, None),
    ("search.base_url", Shape::Text, None),
    ("search.api_key", Shape::Secret, None),
    ("search.api_key_env", Shape::Text, None),
    ("search.api_key_keyring", Shape::Flag, None),
    ("search.native", Shape::Flag, Some("false")),
    ("patch_review.mode", Shape::Text, Some("\"off\"")),
    ("recovery.policy", Shape::Text, Some("\"continue\"")),
    ("clients.grace_seconds", Shape::Number, Some("60")),
    ("limits.steps", Shape::Number, Some("50")),
    ("limits.tokens", Shape::Number, Some("2000000")),
    ("limits.seconds", Shape::Number, Some("3600")),
    ("limits.repeats", Shape::Number, Some("3")),
    ("limits.compact_at_percent", Shape::Number, Some("80")),
    ("limits.assumed_window", Shape::Number, Some("128000")),
    ("audit.log", Shape::Flag, Some("true")),
    ("mcp.servers.*.command", Shape::List, None),
    ("mcp.servers.*.url", Shape::Text, None),
    ("mcp.servers.*.timeout_seconds", Shape::Number, None),
    ("mcp.servers.*.enabled", Shape::Flag, None),
    ("mcp.servers.*.sandbox", Shape::Flag, None),
    ("mcp.servers.*.network", Shape::Flag, None),
    ("mcp.servers.*.read", Shape::List, None),
    ("mcp.servers.*.write", Shape::List, None),
    ("mcp.servers.*.env.*", Shape::Secret, None),
    ("mcp.servers.*.headers.*", Shape::Secret, None),
    ("mcp.servers.*.oauth.client_id", Shape::Text, None),
    ("mcp.servers.*.oauth.client_secret", Shape::Secret, None),
    ("mcp.servers.*.oauth.scopes", Shape::List, None),
    ("mcp.servers.*.oauth.redirect_port", Shape::Number, None),
];

/// The type of the key at a path.
pub(super) fn shape_of(path: &str) -> Option<Shape> {
    let own = all().find(|(pattern, ..)| matches(pattern, path)).map(|(_, shape, _)| *shape);
    own.or_else(|| listen().any(|(key, _)| key == path).then_some(Shape::Text))
}

/// Every key as a pattern.
pub(super) fn patterns() -> impl Iterator<Item = Cow<'static, str>> {
    let listen = listen().map(|(key, _)| Cow::Owned(key));
    all().map(|(pattern, ..)| Cow::Borrowed(*pattern)).chain(listen)
}

/// The known key that is most similar to a mistyped path.
pub(super) fn nearest(path: &str) -> String {
    let named = path.starts_with("provider") || path.starts_with("rule");
    let name = path.split('.').nth(1).filter(|_| named).unwrap_or("NAME");
    let spelled = patterns().map(|pattern| pattern.replace('*', name));
    spelled.min_by_key(|known| strsim::damerau_levenshtein(known, path)).expect("there are keys")
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut given) = (pattern.split('.'), path.split('.'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some("*"), Some(name)) if !name.is_empty() => {}
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return false,
        }
    }
}
