//! A follower that records what it receives.

use quintet_kernel::model::Channel;
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::{Cursor, Event, Item};

use crate::world::{name, within};

/// A follower and what it received.
pub(crate) struct Watcher {
    follow: Box<dyn Follower>,
    pub(crate) items: Vec<Item>,
    pub(crate) ended: bool,
}

impl Watcher {
    pub(crate) fn new(follow: Box<dyn Follower>) -> Self {
        Self { follow, items: Vec::new(), ended: false }
    }

    /// Waits for more items; returns their number.
    pub(crate) async fn more(&mut self) -> Result<usize, Error> {
        match self.follow.next().await? {
            Some(items) => {
                self.items.extend(items.iter().cloned());
                Ok(items.len())
            }
            None => {
                self.ended = true;
                Ok(0)
            }
        }
    }

    /// Reads until the [`story`](Self::story) ends like this.
    pub(crate) async fn until(&mut self, end: &str) {
        within(async {
            while !self.story().ends_with(end) {
                assert!(!self.ended, "ended before {end:?}: {}", self.story());
                self.more().await.unwrap();
            }
        })
        .await;
    }

    /// Reads until the turn has ended.
    pub(crate) async fn turn_over(&mut self) {
        within(async {
            while !self.items.last().is_some_and(ends_turn) {
                assert!(!self.ended, "ended in the middle of a turn: {}", self.story());
                self.more().await.unwrap();
            }
        })
        .await;
    }

    /// Reads until the daemon has shut down.
    pub(crate) async fn end(&mut self) {
        within(async {
            while !self.ended {
                self.more().await.unwrap();
            }
        })
        .await;
    }

    /// Reads the available items without waiting.
    pub(crate) async fn peek(&mut self) {
        let nothing = std::time::Duration::ZERO;
        while let Ok(more) = tokio::time::timeout(nothing, self.more()).await {
            more.unwrap();
            assert!(!self.ended, "the daemon shut down");
        }
    }

    /// What was received: events as `<name>`, text unchanged, thoughts as `(thought)`, progress as
    /// `[progress]`. The same however the text was split.
    pub(crate) fn story(&self) -> String {
        story(&self.items)
    }

    /// Only the text.
    pub(crate) fn text(&self) -> String {
        let text = |item: &Item| match item {
            Item::Text { text, .. } => Some(text.to_string()),
            Item::Event(_) | Item::Progress { .. } => None,
        };
        self.items.iter().filter_map(text).collect()
    }

    /// The position after the last item.
    pub(crate) fn position(&self) -> Cursor {
        let position = |item: &Item| match item {
            Item::Text { position, .. } => Some(*position),
            Item::Event(record) => Some(Cursor::after(record.seq)),
            Item::Progress { .. } => None,
        };
        self.items.iter().rev().find_map(position).unwrap_or(Cursor::START)
    }
}

fn ends_turn(item: &Item) -> bool {
    matches!(item, Item::Event(record) if matches!(
        record.event,
        Event::TurnCompleted { .. } | Event::TurnFailed { .. } | Event::TurnCancelled { .. }
    ))
}

/// See [`Watcher::story`].
pub(crate) fn story(items: &[Item]) -> String {
    let mut story = String::new();
    for item in items {
        match item {
            Item::Event(record) => story.push_str(&format!("<{}>", name(&record.event))),
            Item::Text { channel, text, .. } => write(&mut story, *channel, text),
            Item::Progress { text, .. } => story.push_str(&format!("[{text}]")),
        }
    }
    story
}

/// Adds text to a story.
pub(crate) fn write(story: &mut String, channel: Channel, text: &str) {
    match channel {
        Channel::Text => story.push_str(text),
        Channel::Thought if story.ends_with(')') => {
            story.pop();
            story.push_str(&format!("{text})"));
        }
        Channel::Thought => story.push_str(&format!("({text})")),
    }
}
