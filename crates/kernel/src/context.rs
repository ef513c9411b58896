//! What a model is told of the workspace: gathered when a turn begins, recorded as it was sent.
//!
//! What is known when the first model call is made stands in the system prompt and stays there,
//! because providers remember a prompt by how it begins. What changed since comes with the message
//! of the turn that noticed it. A compaction rewrites the beginning anyway, so it takes all of it in.

use serde::{Deserialize, Serialize};

use crate::id::TurnId;

/// One subject of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What there is to say; nothing any more if empty.
    pub text: String,
}

/// What a session's models are told of its workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// What the system prompt says.
    pub base: Vec<Section>,
    /// What changed since, by the turn that noticed it.
    pub updates: Vec<ContextUpdate>,
    /// Both together.
    known: Vec<Section>,
}

/// What changed, noticed when a turn began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUpdate {
    /// The turn.
    pub turn: TurnId,
    /// The sections that are other than before.
    pub sections: Vec<Section>,
}

impl Context {
    /// What is known now.
    pub fn current(&self) -> &[Section] {
        &self.known
    }

    /// What is other in `found` than what is known, gone sections as empty ones.
    pub fn diff(&self, found: Vec<Section>) -> Vec<Section> {
        let known = &self.known;
        let gone = known.iter().filter(|old| found.iter().all(|new| new.title != old.title));
        let gone: Vec<_> =
            gone.map(|old| Section { title: old.title.clone(), text: String::new() }).collect();
        let fresh = found.into_iter().filter(|new| !known.contains(new));
        fresh.chain(gone).collect()
    }

    pub(crate) fn apply(&mut self, turn: &TurnId, sections: &[Section]) {
        if sections.is_empty() {
            return;
        }
        if self.base.is_empty() && self.updates.is_empty() {
            self.base = sections.to_vec();
        } else {
            let (turn, sections) = (turn.clone(), sections.to_vec());
            self.updates.push(ContextUpdate { turn, sections });
        }
        sections.iter().for_each(|section| replace(&mut self.known, section));
        self.known.retain(|section| !section.text.is_empty());
    }

    /// Moves everything to the beginning.
    pub(crate) fn fold_updates(&mut self) {
        self.base.clone_from(&self.known);
        self.updates.clear();
    }
}

fn replace(all: &mut Vec<Section>, section: &Section) {
    match all.iter_mut().find(|known| known.title == section.title) {
        Some(known) => known.text.clone_from(&section.text),
        None => all.push(section.clone()),
    }
}

/// The sections as the system prompt has them.
pub fn format_base(sections: &[Section]) -> String {
    format!("Workspace context:\n{}", joined(sections))
}

/// The sections as a later message has them.
pub fn format_update(sections: &[Section]) -> String {
    format!("Workspace context, changed since:\n{}", joined(sections))
}

fn joined(sections: &[Section]) -> String {
    let one = |Section { title, text }: &Section| {
        if text.is_empty() {
            format!("{title}: nothing any more")
        } else {
            format!("{title}:\n{text}")
        }
    };
    sections.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests;
