//! What is well and what is not: the checks of the machine and the configuration.

use super::BoxFuture;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The part that was checked.
    pub about: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The state of the part.
    pub message: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// A part that is well.
    pub fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, severity: Severity::Ok, message: message.into(), remedy: None }
    }

    /// A part that works, but not as it should.
    pub fn warning(
        about: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { about, severity: Severity::Warning, message: message.into(), remedy }
    }

    /// A part that cannot work so.
    pub fn error(
        about: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { about, severity: Severity::Error, message: message.into(), remedy }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The part is well.
    Ok,
    /// The part works, but less well or less safely than it could.
    Warning,
    /// The daemon, or a part of it, cannot work so.
    Error,
}

/// Inbound: the checks of the machine and the configuration.
pub trait Diagnosis: Send + Sync {
    /// Runs all checks. No secret is in what they find.
    fn check(&self) -> BoxFuture<'_, Vec<Finding>>;
    /// Everything that is set and where it comes from, as TOML without secrets. Fails with a message
    /// for people if the configuration cannot be read.
    fn configuration(&self) -> BoxFuture<'_, Result<String, String>>;
}
