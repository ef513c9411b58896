//! Everything that can be set.

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Text,
    /// Text that is never shown.
    Secret,
    /// A file or folder. One that is not absolute is meant from the folder the program started in.
    Path,
    Flag,
    Number,
    List,
    /// Several things with fields of their own.
    Tables,
}

impl Shape {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text | Self::Secret | Self::Path => "a string",
            Self::Flag => "true or false",
            Self::Number => "a whole number",
            Self::List => "a list of strings",
            Self::Tables => "a list of tables",
        }
    }
}

/// A key, its shape and, where it has one, its default as TOML. `*` stands for any name.
pub(super) type Key = (&'static str, Shape, Option<&'static str>);

pub(super) const KEYS: &[Key] = &[
    ("data_dir", Shape::Path, None),
    ("default_model", Shape::Text, None),
    ("listen.harness", Shape::Text, Some("\"127.0.0.1:8787\"")),
    ("listen.jarvis", Shape::Text, Some("\"127.0.0.1:8100\"")),
    ("listen.agent", Shape::Text, Some("\"127.0.0.1:8080\"")),
    ("listen.agent_health", Shape::Text, Some("\"127.0.0.1:8081\"")),
    ("listen.windie", Shape::Text, Some("\"127.0.0.1:8765\"")),
    ("listen.terminal", Shape::Text, Some("\"auto\"")),
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
    ("sandbox.mode", Shape::Text, Some("\"prefer\"")),
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
    ("harness.auth_token", Shape::Secret, None),
    ("harness.hosts", Shape::List, Some("[]")),
    ("harness.session_tree", Shape::Flag, None),
    ("jarvis.workspace", Shape::Text, None),
    ("jarvis.session_expiry", Shape::Number, Some("86400")),
    ("jarvis.tool_timeout", Shape::Number, Some("300")),
    ("jarvis.tools", Shape::Tables, Some("[]")),
    ("jarvis.daemon_tools", Shape::List, Some("[]")),
    ("jarvis.hosts", Shape::List, Some("[]")),
    ("agent.auth_token", Shape::Secret, None),
    ("agent.hosts", Shape::List, Some("[]")),
    ("agent.ping_seconds", Shape::Number, Some("30")),
    ("agent.silence_seconds", Shape::Number, Some("75")),
    ("audit.log", Shape::Flag, Some("true")),
    ("terminal.sessions_dir", Shape::Text, None),
    ("terminal.context_tokens", Shape::Number, Some("2000")),
    ("terminal.approval_timeout_seconds", Shape::Number, Some("300")),
    ("windie.hosts", Shape::List, Some("[]")),
    ("windie.install_auth", Shape::Flag, Some("false")),
    ("windie.registration", Shape::Flag, Some("true")),
    ("windie.registration_secret", Shape::Secret, None),
    ("windie.artifact_limit_bytes", Shape::Number, Some("26214400")),
    ("windie.artifact_keep_seconds", Shape::Number, Some("604800")),
    ("windie.trace_events", Shape::Flag, Some("false")),
    ("windie.memory_events", Shape::Flag, Some("false")),
    ("windie.runs_key", Shape::Secret, None),
    ("windie.max_active_runs_per_workspace", Shape::Number, None),
    ("windie.embedding_service_key", Shape::Secret, None),
];

/// The key that a path names.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|(pattern, ..)| matches(pattern, path))
}

/// The known key that a mistyped path is most like.
pub(super) fn nearest(path: &str) -> String {
    let named = path.starts_with("provider") || path.starts_with("rule");
    let name = path.split('.').nth(1).filter(|_| named).unwrap_or("NAME");
    let spelled = KEYS.iter().map(|(pattern, ..)| pattern.replace('*', name));
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
