//! The errors of the keyring, and what to do about them.

use std::fmt;

use secret_service::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyringError {
    /// There is no keyring, for this reason if it is known.
    Absent(Option<String>),
    /// The keyring does not answer.
    Silent,
    Locked,
    /// The user did not unlock it.
    Refused,
    /// The keyring has no such key.
    Missing,
    Other(String),
}

impl KeyringError {
    /// The error for a keyring that cannot be used at all.
    pub(super) fn absent(error: Error) -> Self {
        match error {
            Error::Unavailable => Self::Absent(None),
            error => {
                let why = error.to_string();
                Self::Absent(Some(why).filter(|why| !why.contains("ServiceUnknown")))
            }
        }
    }

    /// What the user can do about the error.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::Absent(_) => {
                "log in to a desktop with GNOME Keyring, KWallet or KeePassXC; elsewhere, such as on a server, \
                 use the vendor's variable or providers.NAME.api_key_env"
            }
            Self::Silent => "see whether its program hangs or waits for an answer on the screen",
            Self::Locked => "unlock it, and start the daemon again if one runs",
            Self::Refused => "unlock it, and try again",
            Self::Missing => "quintet keys set NAME, or quintet keys forget NAME",
            Self::Other(_) => "look at its program's log",
        }
    }
}

impl fmt::Display for KeyringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(None) => f.write_str("there is no keyring service in this session"),
            Self::Absent(Some(why)) => {
                write!(f, "there is no keyring service in this session ({why})")
            }
            Self::Silent => f.write_str("the keyring does not answer"),
            Self::Locked => f.write_str("the keyring is locked"),
            Self::Refused => f.write_str("the keyring was not unlocked"),
            Self::Missing => f.write_str("the keyring has no such key"),
            Self::Other(why) => write!(f, "the keyring failed: {why}"),
        }
    }
}

impl std::error::Error for KeyringError {}

impl From<Error> for KeyringError {
    fn from(error: Error) -> Self {
        match error {
            Error::Locked => Self::Locked,
            Error::Prompt | Error::PromptDisconnected => Self::Refused,
            Error::NoResult => Self::Missing,
            Error::Unavailable => Self::Absent(None),
            error => Self::Other(error.to_string()),
        }
    }
}
