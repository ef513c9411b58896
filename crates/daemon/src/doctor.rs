//! `quintet doctor`: checks the machine and the configuration, and prints how to fix problems.

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
use quintet_kernel::port::{BoxFuture, Diagnosis, Finding, Severity};
use tokio::sync::Semaphore;

use crate::cli::Flags;
use crate::options;

/// The checks of `quintet doctor`, for the running daemon.
#[derive(Debug)]
pub(crate) struct Doctor {
    flags: Flags,
    /// One run at a time: the checks read whole model files.
    limit: Semaphore,
}

impl Doctor {
    /// The checks of a daemon that was started with these flags.
    pub(crate) fn new(flags: Flags) -> Self {
        Self { flags, limit: Semaphore::new(1) }
    }
}

impl Diagnosis for Doctor {
    fn check(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async {
            let _permit = self.limit.acquire().await;
            let flags = self.flags.clone();
            let checked = tokio::task::spawn_blocking(move || findings(&flags)).await;
            checked.unwrap_or_else(|error| {
                let remedy = "run `quintet doctor` on the daemon's machine";
                vec![Finding::error("doctor", format!("a check broke off: {error}"), remedy)]
            })
        })
    }

    fn configuration(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async {
            let flags = self.flags.clone();
            let shown = tokio::task::spawn_blocking(move || options::shown(&flags)).await;
            shown.map_err(|error| error.to_string())?.map_err(|error| format!("{error:#}"))
        })
    }
}

/// Runs all checks and prints a line for each. The exit code is a failure if a check found an error.
pub(crate) fn main(flags: &Flags) -> Result<ExitCode> {
    let findings = findings(flags);
    let mut stdout = std::io::stdout().lock();
    for Finding { about, severity, message, remedy } in &findings {
        writeln!(stdout, "{:<5} {about:<14} {message}", severity_name(*severity))?;
        if let Some(remedy) = remedy {
            writeln!(stdout, "      {:<14} -> {remedy}", "")?;
        }
    }
    let ill = findings.iter().any(|finding| finding.severity == Severity::Error);
    Ok(if ill { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reads the configuration as it is now and runs all checks.
fn findings(flags: &Flags) -> Vec<Finding> {
    let options = match options::read(flags) {
        Ok(options) => options,
        Err(error) => {
            let remedy = "correct that line; `quintet config` prints the effective values";
            return vec![Finding::error("configuration", format!("{error:#}"), remedy)];
        }
    };
    let environment = options::environment();
    let mut findings = machine::check(&options, &environment);
    findings.extend(setup::check(&options, flags));
    findings.extend(store::check(&options));
    findings.extend(memory::check(&options));
    findings.extend(mcp::check(&options, &environment));
    findings.extend(keyring::check(&options));
    findings
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Ok => "ok",
        Severity::Warning => "warn",
        Severity::Error => "FAIL",
    }
}
