//! Calls that wait for approval, and the keys that answer them.

use crossterm::event::{KeyCode, KeyEvent};

use super::Model;
use crate::notice::ApprovalRequest;
use crate::wire::{Decision, Request};

/// Ticks before a yes is accepted: a key that was pressed before the request appeared is ignored.
const SETTLE_TICKS: u64 = 2;
const TICKS_PER_SECOND: u64 = 4;

/// A call that waits for an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenApproval {
    pub(crate) request: ApprovalRequest,
    /// Lines of the preview above the screen.
    pub(crate) scroll: usize,
    /// Ticks since the request was shown.
    pub(crate) age: u64,
}

impl OpenApproval {
    pub(super) fn new(request: ApprovalRequest) -> Self {
        Self { request, ..Self::default() }
    }

    /// True once a yes is accepted.
    pub(crate) fn is_settled(&self) -> bool {
        self.age >= SETTLE_TICKS
    }

    /// Seconds until the call is refused.
    pub(crate) fn seconds_left(&self) -> Option<u64> {
        self.request.timeout.map(|timeout| timeout.saturating_sub(self.age / TICKS_PER_SECOND))
    }
}

impl Model {
    /// Handles a key while a call waits for approval.
    pub(super) fn key_of_approval(&mut self, key: KeyEvent) -> Vec<Request> {
        let page = usize::from(self.size.rows / 2).max(1);
        let Some(approval) = self.chat.approvals.front_mut() else { return Vec::new() };
        if let Some(choices) = &approval.request.choices {
            let answer = match key.code {
                KeyCode::Char('y' | 'Y') if choices.len() == 1 => choices.first(),
                KeyCode::Char(digit) => choices.get(position(digit)),
                _ => None,
            };
            if let Some(choice) = answer.filter(|_| approval.is_settled()) {
                let (execution, content) =
                    (approval.request.execution.clone(), choice.content.clone());
                self.chat.approvals.pop_front();
                return vec![Request::Answer { execution, content }];
            }
        }
        let is_question = approval.request.choices.is_some();
        let decision = match key.code {
            KeyCode::Up => return scroll(approval, approval.scroll.saturating_sub(1)),
            KeyCode::Down => return scroll(approval, approval.scroll + 1),
            KeyCode::PageUp => return scroll(approval, approval.scroll.saturating_sub(page)),
            KeyCode::PageDown => return scroll(approval, approval.scroll + page),
            KeyCode::Home => return scroll(approval, 0),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => Decision::No,
            KeyCode::Char(_) if is_question => return Vec::new(),
            KeyCode::Char('y' | 'Y') => Decision::Once,
            KeyCode::Char('a' | 'A') => Decision::Same,
            KeyCode::Char('s' | 'S') => Decision::Similar,
            _ => return Vec::new(),
        };
        if decision != Decision::No && !approval.is_settled() {
            return Vec::new();
        }
        let execution = approval.request.execution.clone();
        self.chat.approvals.pop_front();
        vec![Request::Approve { execution, decision }]
    }
}

/// The index of a digit in the list; beyond every list for other keys.
fn position(digit: char) -> usize {
    match digit.to_digit(10) {
        Some(number @ 1..) => number as usize - 1,
        Some(0) | None => usize::MAX,
    }
}

/// Scrolls the preview; the view keeps the position within it.
fn scroll(approval: &mut OpenApproval, to: usize) -> Vec<Request> {
    approval.scroll = to;
    Vec::new()
}
