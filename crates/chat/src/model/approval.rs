//! Calls that wait for approval, and the keys that answer them.

use crossterm::event::{KeyCode, KeyEvent};

use super::Model;
use crate::notice::ApprovalRequest;
use crate::wire::{Decision, Request};

/// Ticks before a yes counts: a key that was pressed before the request was seen is no answer.
const SETTLES: u64 = 2;
const TICKS_A_SECOND: u64 = 4;

/// A call that waits for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenApproval {
    pub(crate) asked: ApprovalRequest,
    /// Lines of the preview above the screen.
    pub(crate) scroll: usize,
    /// Ticks since the request was shown.
    pub(crate) age: u64,
}

impl OpenApproval {
    pub(super) fn new(asked: ApprovalRequest) -> Self {
        Self { asked, ..Self::default() }
    }

    /// True once a yes counts.
    pub(crate) fn is_settled(&self) -> bool {
        self.age >= SETTLES
    }

    /// Seconds until the call is refused.
    pub(crate) fn left(&self) -> Option<u64> {
        self.asked.timeout.map(|timeout| timeout.saturating_sub(self.age / TICKS_A_SECOND))
    }
}

impl Model {
    /// Handles a key while a call waits for approval.
    pub(super) fn key_of_approval(&mut self, key: KeyEvent) -> Vec<Request> {
        let page = usize::from(self.size.rows / 2).max(1);
        let Some(ask) = self.chat.approvals.front_mut() else { return Vec::new() };
        let decision = match key.code {
            KeyCode::Up => return scroll(ask, ask.scroll.saturating_sub(1)),
            KeyCode::Down => return scroll(ask, ask.scroll + 1),
            KeyCode::PageUp => return scroll(ask, ask.scroll.saturating_sub(page)),
            KeyCode::PageDown => return scroll(ask, ask.scroll + page),
            KeyCode::Home => return scroll(ask, 0),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => Decision::No,
            KeyCode::Char('y' | 'Y') => Decision::Once,
            KeyCode::Char('a' | 'A') => Decision::Same,
            KeyCode::Char('s' | 'S') => Decision::Similar,
            _ => return Vec::new(),
        };
        if decision != Decision::No && !ask.is_settled() {
            return Vec::new();
        }
        let execution = ask.asked.execution.clone();
        self.chat.approvals.pop_front();
        vec![Request::Approve { execution, decision }]
    }
}

/// The view keeps it within the preview.
fn scroll(ask: &mut OpenApproval, to: usize) -> Vec<Request> {
    ask.scroll = to;
    Vec::new()
}
