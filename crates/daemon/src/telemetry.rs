//! Logging to standard error.

use std::io::{self, IsTerminal as _, Write};

use tracing_subscriber::EnvFilter;

use crate::cli::LogFormat;

/// The default filter. The MCP library warns about every request that it refuses.
const DEFAULT_FILTER: &str = "info,rmcp=error";

/// Sets up logging; `filter` is the value of `QUINTET_LOG`, if set.
pub(crate) fn start(format: LogFormat, filter: Option<&str>) {
    let filter = EnvFilter::try_new(filter.unwrap_or(DEFAULT_FILTER));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let colours = io::stderr().is_terminal();
    let logs =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| LossyStderr(io::stderr()));
    let logs = logs.with_ansi(colours);
    match format {
        LogFormat::Text => logs.with_target(false).init(),
        LogFormat::Json => logs.json().init(),
    }
}

/// Standard error that drops lines it cannot write, for example on a full disk, so that logging never stops
/// the daemon.
struct LossyStderr(io::Stderr);

impl Write for LossyStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let _ = self.0.write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}
