//! Handles keys.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{Model, Pane, Search, Sessions};
use crate::wire::Request;

impl Model {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Request> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        if is_ctrl(key, 'c') {
            return self.interrupt();
        }
        self.armed = false;
        self.hint = None;
        if !self.chat.approvals.is_empty() {
            return self.key_of_approval(key);
        }
        match self.pane {
            Pane::Chat => self.key_of_chat(key),
            Pane::Help => {
                self.pane = Pane::Chat;
                Vec::new()
            }
            Pane::Sessions(_) => self.key_of_sessions(key),
            Pane::Search(_) => self.key_of_search(key),
        }
    }

    pub(super) fn paste(&mut self, text: &str) -> Vec<Request> {
        match &mut self.pane {
            // An approval is answered with a key, never with the content of a paste.
            _ if !self.chat.approvals.is_empty() => {}
            Pane::Chat => self.editor.insert(text),
            Pane::Search(search) => search.editor.insert(&text.replace('\n', " ")),
            Pane::Sessions(sessions) => sessions.filter.insert(&text.replace('\n', " ")),
            Pane::Help => {}
        }
        Vec::new()
    }

    /// Ctrl-C: cancels the running query, then quits.
    fn interrupt(&mut self) -> Vec<Request> {
        if self.armed || self.chat.running.as_ref().is_some_and(|running| running.cancelling) {
            self.leaving = true;
            return Vec::new();
        }
        self.armed = true;
        if self.chat.running.is_some() {
            self.hint = Some("stopping; Ctrl-C again to quit".into());
            return self.cancel();
        }
        self.editor.clear();
        self.pane = Pane::Chat;
        self.hint = Some("Ctrl-C again to quit".into());
        Vec::new()
    }

    fn key_of_chat(&mut self, key: KeyEvent) -> Vec<Request> {
        let page = usize::from(self.size.rows / 2).max(1);
        match key.code {
            KeyCode::Char('d') if is_ctrl(key, 'd') && self.editor.is_empty() => {
                self.leaving = true;
            }
            KeyCode::Char('l') if is_ctrl(key, 'l') => return self.open_sessions(),
            KeyCode::Char('f') if is_ctrl(key, 'f') => self.pane = Pane::Search(Search::default()),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_add(page),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_sub(page),
            KeyCode::End if key.modifiers.contains(KeyModifiers::CONTROL) => self.scroll = 0,
            KeyCode::Enter if !key.modifiers.contains(KeyModifiers::ALT) => return self.enter(),
            KeyCode::Up if self.editor.is_first_line() => {
                if let Some(text) = self.input_history.older(self.editor.text()) {
                    self.editor.set(text);
                }
            }
            KeyCode::Down if self.editor.is_last_line() => {
                if let Some(text) = self.input_history.newer() {
                    self.editor.set(text);
                }
            }
            KeyCode::Esc => self.scroll = 0,
            KeyCode::Tab if self.editor.text().starts_with('/') => self.complete_command(),
            _ => {
                let before = self.editor.is_empty();
                self.editor.key(key);
                // Servers change, so their prompts are requested when a command is typed.
                if before && self.editor.text() == "/" && self.chat.online {
                    return vec![Request::Prompts];
                }
            }
        }
        Vec::new()
    }

    fn enter(&mut self) -> Vec<Request> {
        let text = self.editor.text().trim().to_owned();
        if text.is_empty() {
            return Vec::new();
        }
        if !self.chat.online && !text.starts_with('/') {
            self.hint = Some("not connected to the daemon; your message is kept here".into());
            return Vec::new();
        }
        self.input_history.remember(self.editor.text());
        self.editor.clear();
        match text.strip_prefix('/') {
            Some(command) => self.command(command),
            None => self.send_or_queue(text),
        }
    }

    pub(super) fn open_sessions(&mut self) -> Vec<Request> {
        self.pane = Pane::Sessions(Sessions::default());
        vec![Request::List]
    }

    fn key_of_search(&mut self, key: KeyEvent) -> Vec<Request> {
        let Pane::Search(search) = &mut self.pane else { return Vec::new() };
        let last = search.found.saturating_sub(1);
        match key.code {
            KeyCode::Esc => self.pane = Pane::Chat,
            KeyCode::Enter | KeyCode::Up => search.nth = (search.nth + 1).min(last),
            KeyCode::Down => search.nth = search.nth.saturating_sub(1),
            _ => {
                search.nth = 0;
                search.editor.key(key);
            }
        }
        Vec::new()
    }
}

pub(super) fn is_ctrl(key: KeyEvent, letter: char) -> bool {
    key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char(letter)
}
