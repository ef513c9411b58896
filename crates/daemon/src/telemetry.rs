//! Logs, on standard error.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// What is logged if nobody says. The library for MCP warns of every request that it refuses.
const DEFAULT_FILTER: &str = "info,rmcp=error";

/// Sets logging up; `filter` is the value of `QUINTET_LOG`, where set.
pub(crate) fn start(format: LogFormat, filter: Option<&str>) {
    let filter = EnvFilter::try_new(filter.unwrap_or(DEFAULT_FILTER));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let colours = io::stderr().is_terminal();
    let logs =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Forgiving(io::stderr()));
    let logs = logs.with_ansi(colours);
    match format {
        LogFormat::Text => logs.with_target(false).init(),
        LogFormat::Json => logs.json().init(),
    }
}

/// Standard error may be a file on a full disk. A line that cannot be written is lost; nobody who
/// has something to say may come to harm by it, least of all who writes the journal.
struct Forgiving(io::Stderr);

impl Write for Forgiving {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}
