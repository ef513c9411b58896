//! What is said in a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{BlobId, CallId, MessageId, TurnId};
use crate::model::{ModelRef, Sealed};
use crate::time::Time;
use crate::tool::Ending;

/// The speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Standing instructions.
    System,
    /// The person, or the front end for them.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// Whether it is one of those who talk with each other.
    pub fn is_conversation(self) -> bool {
        match self {
            Self::User | Self::Assistant => true,
            Self::System | Self::Tool => false,
        }
    }
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(String),
    /// What the front end tells of where the person is, beside what they said.
    Context(String),
    /// What the model thought aloud.
    Thought(String),
    /// An attachment, by the name it was given in this session; in a tool's result also a file that
    /// the call left behind, by its name there.
    Media {
        /// What it is to a model.
        kind: MediaKind,
        /// The attachment's name.
        name: String,
        /// The type the sender states, else the attachment's own.
        mime: Option<String>,
    },
    /// A tool call that the model asks for.
    Call {
        /// The call.
        call: CallId,
        /// The tool's name.
        tool: String,
        /// The arguments.
        input: Value,
    },
}

/// What an attachment is to a model.
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
    /// The word for it.
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
    /// The speaker.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
    /// How models are told of it, where that is other than its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wording: Option<String>,
    /// When.
    pub at: Time,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// Which attempt at the turn wrote it; messages of clients have attempt 0.
    pub attempt: u32,
    /// For a tool's result: the call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// For a tool's result: how the call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// A partial answer that was cut short; shown to people, not sent to models.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// For a model's message: which model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ModelRef>,
    /// For a model's message: what only that model can read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<Sealed>,
    /// For a tool's result: the files it left behind, which its parts may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CallArtifact>,
}

impl Message {
    /// The text of it, without thoughts and calls.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }
}

/// The plain text in some parts.
pub fn text_of(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Context(_) | Part::Thought(_) | Part::Media { .. } | Part::Call { .. } => None,
        })
        .collect()
}

/// A file that was handed to a session.
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

/// A file that a tool left behind.
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
