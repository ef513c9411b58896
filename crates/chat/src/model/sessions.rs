//! The list of sessions.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;

use super::keys::is_ctrl;
use super::{ChatState, Editor, Model, Pane};
use crate::wire::Request;

/// The list of sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    rows: Vec<Row>,
    pub(crate) filter: Editor,
    /// The index of the selected session among those shown.
    pub(crate) chosen: usize,
    /// True while the deletion of the selected session has to be confirmed.
    pub(crate) deleting: bool,
    pub(crate) loaded: bool,
}

/// A session in the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) updated: String,
    pub(crate) messages: u64,
    pub(crate) workspace: String,
    pub(crate) running: bool,
}

impl Sessions {
    pub(super) fn fill(&mut self, result: &Value) {
        let listed = result["sessions"].as_array().into_iter().flatten();
        self.rows = listed.map(row).collect();
        self.loaded = true;
    }

    pub(super) fn remove(&mut self, id: &str) {
        self.rows.retain(|row| row.id != id);
        self.chosen = self.chosen.min(self.shown().len().saturating_sub(1));
    }

    /// The sessions that contain every word of the filter.
    pub(crate) fn shown(&self) -> Vec<&Row> {
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let matches = |row: &&Row| {
            let text = format!("{} {} {}", row.title, row.workspace, row.id).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.rows.iter().filter(matches).collect()
    }

    fn id(&self) -> Option<String> {
        self.shown().get(self.chosen).map(|row| row.id.clone())
    }
}

fn row(session: &Value) -> Row {
    let text = |field: &str| session[field].as_str().unwrap_or_default().to_owned();
    // To the minute, as people read it.
    let updated = text("updated_at").replace('T', " ").chars().take(16).collect();
    Row {
        id: text("session_id"),
        title: text("title"),
        updated,
        messages: session["message_count"].as_u64().unwrap_or_default(),
        workspace: text("workspace"),
        running: session["running"] == true,
    }
}

impl Model {
    pub(super) fn key_of_sessions(&mut self, key: KeyEvent) -> Vec<Request> {
        let Pane::Sessions(sessions) = &mut self.pane else { return Vec::new() };
        if std::mem::take(&mut sessions.deleting) {
            let sure = matches!(key.code, KeyCode::Char('y' | 'Y'));
            let session = sessions.id().filter(|_| sure);
            return session.map(|session| Request::Delete { session }).into_iter().collect();
        }
        let last = sessions.shown().len().saturating_sub(1);
        match key.code {
            KeyCode::Esc => self.pane = Pane::Chat,
            KeyCode::Up => sessions.chosen = sessions.chosen.saturating_sub(1),
            KeyCode::Down => sessions.chosen = (sessions.chosen + 1).min(last),
            KeyCode::PageUp => sessions.chosen = sessions.chosen.saturating_sub(10),
            KeyCode::PageDown => sessions.chosen = (sessions.chosen + 10).min(last),
            KeyCode::Delete => sessions.deleting = sessions.id().is_some(),
            KeyCode::Char('d') if is_ctrl(key, 'd') => sessions.deleting = sessions.id().is_some(),
            KeyCode::Enter => return self.open_chosen(),
            _ => {
                sessions.filter.key(key);
                sessions.chosen = 0;
            }
        }
        Vec::new()
    }

    fn open_chosen(&mut self) -> Vec<Request> {
        let Pane::Sessions(sessions) = &mut self.pane else { return Vec::new() };
        let Some(session) = sessions.id() else { return Vec::new() };
        self.pane = Pane::Chat;
        self.switch(Some(session));
        Vec::new()
    }

    /// Switches to another session, or to a new one. A connection uses one session and creates it with its
    /// first query, so this opens another connection; a running query continues.
    pub(super) fn switch(&mut self, session: Option<String>) {
        let (chosen, model) = (self.chat.chosen.take(), self.chat.model.take());
        let models = std::mem::take(&mut self.chat.models);
        self.chat =
            ChatState { session, chosen, model, models, reconnect: true, ..ChatState::default() };
        self.transcript.clear();
        self.scroll = 0;
    }
}
