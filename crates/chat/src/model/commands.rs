//! Commands that begin with a slash, and the help.

use super::{Model, Pane};
use crate::wire::Request;

/// What there is to know, a line each.
pub(crate) const HELP: [(&str, &str); 18] = [
    ("Enter", "ask"),
    ("Alt-Enter, Ctrl-J", "a new line"),
    ("Up, Down", "what was typed before"),
    ("PgUp, PgDn, Esc", "scroll, back to the end"),
    ("Ctrl-F", "search what was said"),
    ("Ctrl-L, /sessions", "sessions: open, search, delete"),
    ("Ctrl-C", "stop the answer; twice: quit"),
    ("Ctrl-D", "quit"),
    ("Ctrl-A E W U K", "line begin, end; delete word, to begin, to end"),
    ("y n a s", "yes, no, always this, always such (when a tool asks)"),
    ("/new", "begin another session"),
    ("/model [NAME]", "list models, or choose one"),
    ("/resume", "go on with an answer that was held after a crash"),
    ("/clear", "empty the screen"),
    ("/quit", "leave"),
    ("/help", "this"),
    ("", ""),
    ("a leading space", "keeps a line out of the history"),
];

impl Model {
    pub(super) fn command(&mut self, line: &str) -> Vec<Request> {
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match name {
            "help" | "?" => self.pane = Pane::Help,
            "sessions" => return self.open_sessions(),
            "new" => self.switch(None),
            "clear" => self.transcript.clear(),
            "model" | "models" => self.choose(rest.trim()),
            "resume" => return self.resume(),
            "quit" | "exit" | "q" => self.leaving = true,
            other => self.hint = Some(format!("there is no /{other}; /help lists what there is")),
        }
        Vec::new()
    }

    fn choose(&mut self, name: &str) {
        if name.is_empty() {
            let list = self.talk.models.join("\n");
            self.transcript.note(format!("models:\n{list}"));
            return;
        }
        self.talk.chosen = Some(name.to_owned());
        self.talk.model = Some(name.to_owned());
        self.hint = Some(format!("{name} answers from now on"));
    }

    fn resume(&mut self) -> Vec<Request> {
        let query = self.talk.running.as_ref().and_then(|running| running.query.clone());
        match query {
            Some(query) => vec![Request::Resume { query }],
            None => {
                self.hint = Some("nothing is held".into());
                Vec::new()
            }
        }
    }
}
