//! The description of the workspace that models read: gathered when a turn starts, recorded as
//! it was sent.
//!
//! The first description is part of the system prompt and stays unchanged, because providers
//! cache prompts by their beginning. Later changes are sent with the message of the turn that
//! found them. A compaction rewrites the beginning of the prompt anyway, so it moves everything
//! there.

use serde::{Deserialize, Serialize};

use crate::id::TurnId;

/// One subject of the description, such as the file tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// The content; empty if the section no longer applies.
    pub text: String,
}

/// What a session's models read about its workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// The sections in the system prompt.
    pub base: Vec<Section>,
    /// Later changes, by turn.
    pub updates: Vec<ContextUpdate>,
    /// `base` with all `updates` applied.
    known: Vec<Section>,
}

/// Changed sections, found when a turn started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextUpdate {
    /// The turn.
    pub turn: TurnId,
    /// The sections that differ from before; removed ones are empty.
    pub sections: Vec<Section>,
}

impl Context {
    /// The current sections.
    pub fn current(&self) -> &[Section] {
        &self.known
    }

    /// The sections of `found` that differ from the current ones; removed sections are
    /// empty.
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

    /// Moves all updates into the base.
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

/// The sections as text for the system prompt.
pub fn format_base(sections: &[Section]) -> String {
    format!("Workspace context:\n{}", joined(sections))
}

/// Changed sections as text for a later message.
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
