//! The envelope of all messages to clients, and the small payloads.

pub(crate) mod agent_definition;
pub(crate) mod audio;
pub(crate) mod models;
pub(crate) mod query;
pub(crate) mod rehydrate;
pub(crate) mod tool_manifest;
pub(crate) mod tool_results;
pub(crate) mod tool_schema;
pub(crate) mod user_settings;

use quintet_kernel::Time;
use quintet_kernel::model::ModelRef;
use serde_json::{Value, json};

use user_settings::Settings;

/// The largest accepted message, in bytes.
pub(crate) const LARGEST_MESSAGE: usize = 10 * 1024 * 1024;
/// The error for too many open requests.
pub(crate) const TOO_MANY: &str = "Too many concurrent requests. Please wait.";
/// The reason for closing a silent connection.
pub(crate) const SILENT: &str = "Connection timeout - no data received";
/// The error for a compaction during a query.
pub(crate) const COMPACT_WHILE_BUSY: &str =
    "Cannot compact history while a query is active. Stop the current query and retry.";

/// The error for speech that is not available.
pub(crate) const NO_SPEECH: &str = "Speech service not available";
/// The error for transcription that is not available.
pub(crate) const NO_TRANSCRIPTION: &str = "Transcription service not available";

/// What the daemon can do with speech.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Voice {
    /// True if answers can be read aloud.
    pub(crate) speech: bool,
    /// True if speech can be transcribed.
    pub(crate) transcription: bool,
}

/// The greetings after a wake word.
const GREETINGS: [&str; 5] = [
    "Hello! I'm listening.",
    "Hi! What can I do for you?",
    "I'm here. Go ahead.",
    "Yes? How can I help?",
    "Hey! What's next?",
];

/// A message to a client that is not part of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) kind: &'static str,
    /// The id of the message that it answers.
    pub(crate) id: Option<String>,
    pub(crate) payload: Value,
    pub(crate) context: Context,
}

/// The user, conversation and turn that a message is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    pub(crate) session_id: Option<String>,
    pub(crate) user_id: Option<String>,
    pub(crate) conversation_ref: Option<String>,
    pub(crate) turn_ref: Option<String>,
}

impl Answer {
    /// An answer to a message, without context.
    pub(crate) fn to(id: &str, kind: &'static str, payload: Value) -> Self {
        Self { kind, id: Some(id.into()), payload, context: Context::default() }
    }

    /// A message that answers no request.
    pub(crate) fn notification(kind: &'static str, payload: Value) -> Self {
        Self { kind, id: None, payload, context: Context::default() }
    }

    /// An error message.
    pub(crate) fn error(id: Option<&str>, message: &str) -> Self {
        let payload = json!({ "message": message });
        Self { kind: "error", id: id.map(Into::into), payload, context: Context::default() }
    }

    /// The same with context.
    #[must_use]
    pub(crate) fn about(self, context: Context) -> Self {
        Self { context, ..self }
    }

    /// The encoded message. One that answers no request has no id; an error always has one, perhaps null.
    pub(crate) fn frame(&self, at: Time) -> String {
        let mut frame = envelope(self.kind, &self.payload, &self.context, at);
        if self.id.is_some() || self.kind == "error" {
            frame["id"] = json!(self.id);
        }
        frame.to_string()
    }
}

/// A message with its context.
pub(crate) fn envelope(kind: &str, payload: &Value, about: &Context, at: Time) -> Value {
    without_nulls(json!({
        "type": kind,
        "payload": payload,
        "timestamp": at.to_string(),
        "session_id": about.session_id,
        "user_id": about.user_id,
        "conversation_ref": about.conversation_ref,
        "turn_ref": about.turn_ref,
    }))
}

/// An object without those of its members that are null.
fn without_nulls(mut object: Value) -> Value {
    object.as_object_mut().into_iter().for_each(|members| members.retain(|_, it| !it.is_null()));
    object
}

pub(crate) fn settings_loaded(id: &str, settings: &Settings, usual: &ModelRef) -> Answer {
    Answer::to(id, "settings-loaded", json!({ "config": settings.shown(usual) }))
}

/// The answer to changed settings, with those that have no effect because the daemon lacks the service.
pub(crate) fn settings_updated(
    id: &str,
    updated_keys: &[String],
    settings: &Settings,
    voice: Voice,
) -> Answer {
    let mut payload = json!({ "updated_keys": updated_keys });
    let Settings { speech_mode_enabled, wakeword_stt_enabled, .. } = settings;
    let wanted = [
        ("speech_mode_enabled", speech_mode_enabled & !voice.speech, NO_SPEECH),
        ("wakeword_stt_enabled", wakeword_stt_enabled & !voice.transcription, NO_TRANSCRIPTION),
    ];
    for (name, missing, why) in wanted {
        if missing && updated_keys.iter().any(|key| key == name) {
            payload["unavailable"][name] = why.into();
        }
    }
    Answer::to(id, "settings-updated", payload)
}

/// The answer to a stop: whether a turn was stopped.
pub(crate) fn stop_ack(id: &str, stopped: bool, about: Context) -> Answer {
    let payload = without_nulls(json!({
        "status": if stopped { "stopped" } else { "not-running" },
        "canceled": stopped,
        "conversation_ref": about.conversation_ref,
        "turn_ref": about.turn_ref,
    }));
    Answer::to(id, "stop-query-ack", payload).about(about)
}

/// The answers to a wake word; the id of the message chooses the greeting.
pub(crate) fn awake(id: &str, settings: &Settings, voice: Voice) -> [Answer; 2] {
    let nth = id.bytes().map(usize::from).sum::<usize>() % GREETINGS.len();
    let greeting = GREETINGS[nth];
    let mut activated = json!({
        "speech_mode_enabled": settings.speech_mode_enabled,
        "greeting": greeting,
        "status": "listening",
    });
    if settings.speech_mode_enabled && !voice.speech {
        activated["unavailable"] = json!({ "speech_mode_enabled": NO_SPEECH });
    }
    [
        Answer::to(id, "wakeword-activated", activated),
        Answer::to(id, "wakeword-greeting", json!({ "text": greeting })),
    ]
}

#[cfg(test)]
mod tests;
