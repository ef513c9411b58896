//! Pages of a session's events, from the end backwards.

use quintet_kernel::event::Seq;
use quintet_kernel::model::Channel;
use quintet_kernel::port::{Error, Follower, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, StepId, Time, TurnId};
use serde_json::{Value, json};

use super::encode::{self, Text};

#[cfg(test)]
mod tests;

/// The most events of a page.
const PAGE_LIMIT: u64 = 2_000;
/// The bytes of text after which a page ends early.
const BYTES_LIMIT: usize = 2 * 1024 * 1024;

/// The events before a number, or the last ones, in order. `position` is where a stream continues.
pub(super) async fn page(
    archive: &dyn Sessions,
    session: &SessionId,
    before: Option<Seq>,
    limit: u64,
) -> Result<Value, Error> {
    let start = archive.follow(session, Cursor::START).await?;
    let before = before.filter(|before| *before <= start.head());
    let end = before.unwrap_or(start.head() + 1);
    let mut first = end.saturating_sub(limit.clamp(1, PAGE_LIMIT)).max(1);
    loop {
        let mut follow = archive.follow(session, Cursor::after(first - 1)).await?;
        let page = Page::read(&mut *follow, end, before).await?;
        // A page of long outputs is halved until it is small enough to be read at once.
        let count = end - first;
        if page.bytes > BYTES_LIMIT && count > 1 {
            first = end - count / 2;
            continue;
        }
        let position = follow.position();
        return Ok(json!({
            "events": page.finish(), "first": first, "position": position.to_string(),
        }));
    }
}

/// The number of an event, or of the last one before text or progress.
fn seq(item: &Item) -> Seq {
    match item {
        Item::Event(record) => record.seq,
        Item::Text { seq, .. } => *seq,
        Item::Progress { .. } => 0,
    }
}

/// Events of a page. Consecutive pieces of text are joined.
#[derive(Default)]
struct Page {
    events: Vec<Value>,
    text: Option<Gathered>,
    bytes: usize,
}

struct Gathered {
    turn: TurnId,
    step: StepId,
    channel: Channel,
    text: String,
    at: Time,
    end: Cursor,
}

impl Page {
    /// Reads up to `end` and leaves out what is not before `before`. Without it events after `end`
    /// are kept if the follower returns them, since its position is behind them then.
    async fn read(follow: &mut dyn Follower, end: Seq, before: Option<Seq>) -> Result<Self, Error> {
        let mut page = Self::default();
        while follow.position().seq + 1 < end {
            let Some(items) = follow.next().await? else { break };
            let is_before = |item: &&Item| before.is_none_or(|before| seq(item) < before);
            items.iter().filter(is_before).for_each(|item| page.take(item));
        }
        Ok(page)
    }

    fn take(&mut self, item: &Item) {
        match item {
            Item::Event(_) | Item::Progress { .. } => {
                self.flush();
                let event = encode::item(item);
                self.bytes += event["text"].as_str().map_or(200, |text| text.len() + 200);
                self.events.push(event);
            }
            Item::Text { position, turn, step, channel, text, at, seq: _ } => {
                self.bytes += text.len();
                let fits = |one: &&mut Gathered| one.step == *step && one.channel == *channel;
                if let Some(one) = self.text.as_mut().filter(fits) {
                    one.text.push_str(text);
                    one.end = *position;
                    return;
                }
                self.flush();
                self.text = Some(Gathered {
                    turn: turn.clone(),
                    step: step.clone(),
                    channel: *channel,
                    text: text.to_string(),
                    at: *at,
                    end: *position,
                });
            }
        }
    }

    fn flush(&mut self) {
        let Some(Gathered { turn, step, channel, text, at, end }) = self.text.take() else {
            return;
        };
        self.events.push(Text { turn: &turn, step: &step, channel, text: &text, at, end }.encode());
    }

    fn finish(mut self) -> Vec<Value> {
        self.flush();
        self.events
    }
}
