//! `quintet doctor`: what is well, what is not, and how to mend it.

mod keyring;
mod listeners;
mod machine;
mod mcp;
mod memory;
mod setup;
mod weights;

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use crate::cli::Flags;
use crate::options;

/// What a check found.
#[derive(Debug)]
struct Finding {
    /// What was looked at.
    about: &'static str,
    health: Health,
    /// What is the case.
    what: String,
    /// What to do about it.
    mend: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Well,
    /// The part works, but less well or less safely than it could.
    Poor,
    /// The daemon, or a part of it, cannot work so.
    Ill,
}

impl Health {
    fn word(self) -> &'static str {
        match self {
            Self::Well => "ok",
            Self::Poor => "poor",
            Self::Ill => "ILL",
        }
    }
}

impl Finding {
    fn well(about: &'static str, what: impl Into<String>) -> Self {
        Self { about, health: Health::Well, what: what.into(), mend: None }
    }

    fn poor(about: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { about, health: Health::Poor, what: what.into(), mend: Some(mend.into()) }
    }

    fn ill(about: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { about, health: Health::Ill, what: what.into(), mend: Some(mend.into()) }
    }
}

/// Looks at everything and prints a line each; fails if something is ill.
pub(crate) fn main(flags: &Flags) -> Result<ExitCode> {
    let findings = match options::read(flags) {
        Ok(options) => {
            let environment = options::environment();
            let mut findings = machine::look(&options, &environment);
            findings.extend(setup::look(&options, flags));
            findings.extend(memory::look(&options));
            findings.extend(mcp::look(&options, &environment));
            findings.extend(keyring::look(&options));
            findings
        }
        Err(error) => {
            let mend = "mend that line; `quintet config` prints what is in force";
            vec![Finding::ill("configuration", format!("{error:#}"), mend)]
        }
    };
    let mut stdout = std::io::stdout().lock();
    for Finding { about, health, what, mend } in &findings {
        writeln!(stdout, "{:<5} {about:<14} {what}", health.word())?;
        if let Some(mend) = mend {
            writeln!(stdout, "      {:<14} -> {mend}", "")?;
        }
    }
    let ill = findings.iter().any(|finding| finding.health == Health::Ill);
    Ok(if ill { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
