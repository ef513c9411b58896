//! Shows the progress of a download: a bar on a terminal, lines elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;

use quintet_weights::Progress;

const BAR_WIDTH: usize = 40;

pub(super) struct Bar {
    terminal: bool,
    /// The last shown share, in percent.
    shown: Mutex<Option<u64>>,
}

impl Bar {
    pub(super) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), shown: Mutex::new(None) }
    }

    /// Ends the bar, so that later output begins on a new line.
    pub(super) fn end(&self) {
        let mut shown = self.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if shown.take().is_some() && self.terminal {
            eprintln!();
        }
    }
}

impl Progress for Bar {
    fn line(&self, text: &str) {
        self.end();
        eprintln!("{text}");
    }

    fn bytes(&self, bytes: u64, of: u64) {
        let percent = bytes.saturating_mul(100) / of.max(1);
        let step = if self.terminal { 1 } else { 10 };
        let mut shown = self.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if shown.is_some_and(|shown| shown / step == percent / step) {
            return;
        }
        *shown = Some(percent);
        let mut stderr = std::io::stderr().lock();
        // A closed terminal must not stop the download.
        let _ = stderr.write_all(line(self.terminal, percent, bytes, of).as_bytes());
        let _ = stderr.flush();
    }
}

fn line(terminal: bool, percent: u64, bytes: u64, of: u64) -> String {
    let (have, all) = (bytes / 1_000_000, of / 1_000_000);
    if !terminal {
        return format!("{percent:>3} %  {have} of {all} MB\n");
    }
    let full = usize::try_from(percent).unwrap_or(0).min(100) * BAR_WIDTH / 100;
    let (full, rest) = ("#".repeat(full), "-".repeat(BAR_WIDTH - full));
    format!("\r[{full}{rest}] {percent:>3} %  {have} of {all} MB ")
}
