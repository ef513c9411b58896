//! Messages of a session, their parts and files.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{BlobId, CallId, MessageId, TurnId};
use crate::model::{ModelRef, Sealed};
use crate::time::Time;
use crate::tool::Ending;

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system prompt's author.
    System,
    /// The user, or a front end on behalf of the user.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// True for user and model messages.
    pub fn is_conversation(self) -> bool {
        match self {
            Self::User | Self::Assistant => true,
            Self::System | Self::Tool => false,
        }
    }
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(String),
    /// Context that the front end adds to the user's text.
    Context(String),
    /// The model's reasoning.
    Thought(String),
    /// An attachment, by its name in this session; in a tool result also a file of the
    /// call, by its name there.
    Media {
        /// The kind of media.
        kind: MediaKind,
        /// The attachment's name.
        name: String,
        /// The type the sender states, else the attachment's own.
        mime: Option<String>,
    },
    /// A tool call that the model requests.
    Call {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The arguments.
        input: Value,
    },
}

/// The kind of an attachment, as models distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Anything else; text files reach every model as text.
    File,
}

impl MediaKind {
    /// The name used in protocols.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Audio => "audio",
            Self::File => "file",
        }
    }
}

/// A message of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The message.
    pub id: MessageId,
    /// The author.
    pub role: Role,
    /// The content.
    pub parts: Vec<Part>,
    /// The text that models read, if it differs from the text of `parts`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wording: Option<String>,
    /// When the message was added.
    pub at: Time,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The attempt at the turn that produced the message; 0 for messages of clients.
    pub attempt: u32,
    /// For a tool's result: the call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// For a tool's result: how the call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// True for an incomplete model message, which is shown to people and not sent to
    /// models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// For a model message: the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ModelRef>,
    /// For a model message: provider data to send back with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<Sealed>,
    /// For a tool result: its files, which `parts` may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CallArtifact>,
}

impl Message {
    /// The plain text, without reasoning and calls.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }
}

/// The plain text in message parts.
pub fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Context(_) | Part::Thought(_) | Part::Media { .. } | Part::Call { .. } => None,
        })
        .collect()
}

/// A file that was added to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// A plain file name, unique in the session.
    pub name: String,
    /// The MIME type.
    pub mime: String,
    /// The content.
    pub blob: BlobId,
    /// The length in bytes.
    pub size: u64,
}

/// A stored file that a tool call returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallArtifact {
    /// A plain file name, unique in the call.
    pub name: String,
    /// The MIME type.
    pub mime: String,
    /// The content.
    pub blob: BlobId,
    /// The length in bytes.
    pub size: u64,
}
