//! `quintet doctor`: checks the machine and the configuration, and says how to fix what is wrong.

mod keyring;
mod listeners;
mod machine;
mod mcp;
mod memory;
mod setup;
mod store;
mod weights;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use crate::cli::Flags;
use crate::options;

/// The result of a check.
#[derive(Debug)]
struct Finding {
    /// The part that was checked.
    about: &'static str,
    severity: Severity,
    /// The state of the part.
    message: String,
    /// What the user can do about it.
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Ok,
    /// The part works, but less well or less safely than it could.
    Warning,
    /// The daemon, or a part of it, cannot work so.
    Error,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warn",
            Self::Error => "FAIL",
        }
    }
}

impl Finding {
    fn ok(about: &'static str, message: impl Into<String>) -> Self {
        Self { about, severity: Severity::Ok, message: message.into(), remedy: None }
    }

    fn warning(about: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            about,
            severity: Severity::Warning,
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn error(about: &'static str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            about,
            severity: Severity::Error,
            message: message.into(),
            remedy: Some(remedy.into()),
        }
    }
}

/// Runs all checks and prints a line for each. The exit code is a failure if a check found an error.
pub(crate) fn main(flags: &Flags) -> Result<ExitCode> {
    let findings = match options::read(flags) {
        Ok(options) => {
            let environment = options::environment();
            let mut findings = machine::check(&options, &environment);
            findings.extend(setup::check(&options, flags));
            findings.extend(store::check(&options));
            findings.extend(memory::check(&options));
            findings.extend(mcp::check(&options, &environment));
            findings.extend(keyring::check(&options));
            findings
        }
        Err(error) => {
            let remedy = "mend that line; `quintet config` prints what is in force";
            vec![Finding::error("configuration", format!("{error:#}"), remedy)]
        }
    };
    let mut stdout = std::io::stdout().lock();
    for Finding { about, severity, message, remedy } in &findings {
        writeln!(stdout, "{:<5} {about:<14} {message}", severity.word())?;
        if let Some(remedy) = remedy {
            writeln!(stdout, "      {:<14} -> {remedy}", "")?;
        }
    }
    let ill = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if ill { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
