//! The user's terminal in full-screen mode; it is restored at the end.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::Once;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

static GUARDED: Once = Once::new();

/// The terminal in full-screen mode.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub(crate) fn enter() -> io::Result<Self> {
        // A panic from here on must still be readable.
        GUARDED.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |about| {
                leave();
                before(about);
            }));
        });
        enable_raw_mode()?;
        let entered = execute!(
            stdout(),
            EnterAlternateScreen,
            EnableBracketedPaste,
            SetTitle("quintet chat")
        );
        match entered.and_then(|()| Terminal::new(CrosstermBackend::new(stdout()))) {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                leave();
                Err(error)
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal; a failure cannot be reported anywhere.
fn leave() {
    let _ =
        execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, crossterm::cursor::Show);
    let _ = disable_raw_mode();
}
