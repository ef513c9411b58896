//! Health checks of the machine and the configuration.

use super::BoxFuture;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The part that was checked.
    pub about: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The state of the part.
    pub message: String,
    /// What the user can do about it.
    pub remedy: Option<String>,
}

impl Finding {
    /// A part that works.
    pub fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, severity: Severity::Ok, message: message.into(), remedy: None }
    }

    /// A part that works with a limitation.
    pub fn warning(
        about: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { about, severity: Severity::Warning, message: message.into(), remedy }
    }

    /// A part that cannot work.
    pub fn error(
        about: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { about, severity: Severity::Error, message: message.into(), remedy }
    }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The part works.
    Ok,
    /// The part works, but less well or less safely than it could.
    Warning,
    /// The daemon, or a part of it, cannot work.
    Error,
}

/// Inbound: the checks of the machine and the configuration.
pub trait Diagnosis: Send + Sync {
    /// Runs all checks. The findings contain no secrets.
    fn check(&self) -> BoxFuture<'_, Vec<Finding>>;
    /// All settings and their sources, as TOML without secrets. Fails with a message for people if
    /// the configuration cannot be read.
    fn configuration(&self) -> BoxFuture<'_, Result<String, String>>;
}
