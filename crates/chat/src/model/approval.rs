//! The question whether a tool may do something, and the keys that answer it.

use crossterm::event::{KeyCode, KeyEvent};

use super::Model;
use crate::heard::Asked;
use crate::wire::{Request, Word};

/// Ticks before a yes counts: who was typing when the question came did not answer it.
const SETTLES: u64 = 2;
const TICKS_A_SECOND: u64 = 4;

/// A question that is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) asked: Asked,
    /// Lines of the preview above the screen.
    pub(crate) scroll: usize,
    /// Ticks since it was shown.
    pub(crate) age: u64,
}

impl Ask {
    pub(super) fn new(asked: Asked) -> Self {
        Self { asked, ..Self::default() }
    }

    /// Whether a yes counts by now.
    pub(crate) fn is_settled(&self) -> bool {
        self.age >= SETTLES
    }

    /// Seconds until it is refused.
    pub(crate) fn left(&self) -> Option<u64> {
        self.asked.timeout.map(|timeout| timeout.saturating_sub(self.age / TICKS_A_SECOND))
    }
}

impl Model {
    /// A key while a question is open; nothing else gets it.
    pub(super) fn key_of_ask(&mut self, key: KeyEvent) -> Vec<Request> {
        let page = usize::from(self.size.rows / 2).max(1);
        let Some(ask) = self.talk.asks.front_mut() else { return Vec::new() };
        let word = match key.code {
            KeyCode::Up => return scroll(ask, ask.scroll.saturating_sub(1)),
            KeyCode::Down => return scroll(ask, ask.scroll + 1),
            KeyCode::PageUp => return scroll(ask, ask.scroll.saturating_sub(page)),
            KeyCode::PageDown => return scroll(ask, ask.scroll + page),
            KeyCode::Home => return scroll(ask, 0),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => Word::No,
            KeyCode::Char('y' | 'Y') => Word::Once,
            KeyCode::Char('a' | 'A') => Word::Same,
            KeyCode::Char('s' | 'S') => Word::Similar,
            _ => return Vec::new(),
        };
        if word != Word::No && !ask.is_settled() {
            return Vec::new();
        }
        let execution = ask.asked.execution.clone();
        self.talk.asks.pop_front();
        vec![Request::Approve { execution, word }]
    }
}

/// The view keeps it within the preview.
fn scroll(ask: &mut Ask, to: usize) -> Vec<Request> {
    ask.scroll = to;
    Vec::new()
}
