//! The bodies of requests.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateSession {
    pub(super) workspace: String,
    #[serde(default)]
    pub(super) model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessage {
    #[serde(default)]
    pub(super) text: String,
    /// A key that the page chose: a message that is sent twice is processed once.
    pub(super) key: String,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) effort: Option<String>,
    #[serde(default)]
    pub(super) mode: Mode,
    #[serde(default)]
    pub(super) files: Vec<File>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateRun {
    /// The queue.
    pub(super) workspace: String,
    pub(super) task: String,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ControlRun {
    Pause,
    Resume,
    Stop,
    SetControlMode { mode: String },
}

/// How much the agent may do in a turn.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    /// What the configuration allows.
    #[default]
    Default,
    /// Everything that does more than read needs an approval.
    Ask,
    /// The model answers in words and calls no tools.
    Answer,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) mime: String,
    pub(super) base64: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerQuestion {
    pub(super) question: String,
    /// The digest of the question as it was shown.
    pub(super) digest: String,
    pub(super) answer: Word,
    #[serde(default)]
    pub(super) reason: Option<String>,
    #[serde(default)]
    pub(super) remember: Scope,
    /// The values that a question of a running call asks for.
    #[serde(default)]
    pub(super) content: Option<Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    Approve,
    Deny,
}

/// The calls that an answer covers.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scope {
    #[default]
    Once,
    Same,
    Similar,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    #[serde(default)]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The last event that the new session shares; all of them if not given.
    #[serde(default)]
    pub(super) at: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChooseModel {
    pub(super) model: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameServers {
    /// The folder that defines them.
    pub(super) workspace: String,
    /// The digests of the definitions as they were shown.
    pub(super) digests: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Recording {
    /// A WAV file in base64.
    pub(super) wav: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Speak {
    /// An answer as the model wrote it.
    pub(super) text: String,
    /// The number of the sentence, from 0 on.
    pub(super) sentence: usize,
}
