//! Identifiers. Each kind is a newtype, so that a turn cannot be passed where a call is
//! expected.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// Maximum length of an id from outside, in bytes; generated ids are shorter.
const ID_LENGTH_LIMIT: usize = 128;

/// An id that [`crate::Stamp`] can generate.
pub trait GeneratedId {
    /// The prefix of all ids of this type.
    const PREFIX: &'static str;
    /// Wraps a generated name.
    fn named(name: String) -> Self;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(#[serde(deserialize_with = "shared_text")] Arc<str>);

        impl $name {
            /// Parses an id from outside; `None` if it is not a valid id.
            pub fn parse(text: &str) -> Option<Self> {
                is_name(text).then(|| Self(text.into()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl GeneratedId for $name {
            const PREFIX: &'static str = $prefix;
            fn named(name: String) -> Self {
                Self(name.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

/// Deserializes text with one allocation instead of serde's two: most deserialized strings are ids.
fn shared_text<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(text.into())
        }
    }

    from.deserialize_str(Text)
}

ids! {
    /// One conversation and its journal; the same in every protocol.
    SessionId = "sess_";
    /// One message of a session.
    MessageId = "msg_";
    /// One user message and everything the agent does to answer it.
    TurnId = "turn_";
    /// One model call of a turn, with the tool calls that it requests.
    StepId = "step_";
    /// One tool call.
    CallId = "call_";
    /// One question of a running call to the user.
    QuestionId = "question_";
    /// Content by the hex of its SHA-256.
    BlobId = "";
    /// One run of the control plane; a UUID, see [`crate::Stamp::uuid`].
    RunId = "";
    /// One control command of a run; a UUID.
    ControlId = "";
}

/// Ids become file names and URL segments, so only characters without a meaning there are allowed.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_LENGTH_LIMIT
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_never_a_path() {
        for bad in ["", "..", "a/b", "a\0", "a b", "é", &"x".repeat(129)] {
            assert_eq!(SessionId::parse(bad), None, "{bad:?}");
        }
        assert!(SessionId::parse("sess_20250101t000000z_abc-1").is_some());
    }
}
