//! Reads a session's events from any position; costs only what is read.

use std::collections::VecDeque;

use quintet_kernel::event::Seq;
use quintet_kernel::port::{Error, Follower, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, Time};
use serde_json::Value;

use super::legacy;
use super::request::Read;
use super::session_context::SessionContext;
use super::stored::event;

/// Events that are read back first to find the turn that is open at an event.
const FIRST_LOOK_BACK: Seq = 64;
/// Bytes of one answer.
const ANSWER_BYTES_LIMIT: usize = 8 * 1024 * 1024;

/// Some events, in order, and where they end.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) events: Vec<Value>,
    /// True if there are more.
    pub(super) more: bool,
    /// What is known after the last of them.
    pub(super) context: SessionContext,
    /// The last event that was read, whether it was requested or not.
    pub(super) upto: Seq,
}

impl Events {
    /// The position from which a follower neither misses nor repeats anything.
    pub(super) fn cursor(&self) -> Cursor {
        Cursor { seq: self.upto, offset: self.context.written }
    }
}

/// A session to read in.
pub(super) struct History<'a> {
    pub(super) sessions: &'a dyn Sessions,
    pub(super) session: SessionId,
    pub(super) workspace: String,
    /// The model of sessions that name none, and that of this one.
    pub(super) models: (String, String),
    /// True if there is any turn in it; if not, none has to be looked for.
    pub(super) turns: bool,
}

impl History<'_> {
    /// Events after one, oldest first.
    pub(super) async fn after(&self, after: Seq, read: &Read) -> Result<Events, Error> {
        // A number after the end is refused as it was sent, before a place ahead of it is read.
        self.follow(after).await?;
        self.between(after, Seq::MAX, read).await
    }

    /// Events after one and before another, oldest first.
    async fn between(&self, after: Seq, end: Seq, read: &Read) -> Result<Events, Error> {
        let (context, upto) = self.context_at_event(after).await?;
        let mut follow = self.follow(upto).await?;
        let mut found = Events { events: Vec::new(), more: false, context, upto };
        // Text counts as read once an event follows it: a client has only its deltas, if anything.
        let mut text = Vec::new();
        let (limit, mut bytes) = (read.limit.unwrap_or(usize::MAX), 0);
        while follow.position().seq < follow.head() {
            for item in follow.next().await?.unwrap_or_default() {
                if place(&item) >= end {
                    return Ok(found);
                }
                let Item::Event(record) = &item else {
                    text.push(item);
                    continue;
                };
                if found.events.len() >= limit || bytes > ANSWER_BYTES_LIMIT {
                    found.more = true;
                    return Ok(found);
                }
                text.drain(..).for_each(|text| found.context.apply(&text));
                found.context.apply(&item);
                let event = in_framing(read, event(&found.context, record));
                found.context.finish(record);
                found.upto = record.seq;
                if read.wants(&event) {
                    bytes += event.to_string().len();
                    found.events.push(event);
                }
            }
        }
        Ok(found)
    }

    /// The context at an event and its number. Where the number is one of text in flight it is the event
    /// before the text.
    async fn context_at_event(&self, after: Seq) -> Result<(SessionContext, Seq), Error> {
        let context = self.context(after).await?;
        if context.last >= after {
            return Ok((context, after));
        }
        let event = context.last;
        Ok((self.context(event).await?, event))
    }

    /// The newest events before one, or of all, newest first.
    pub(super) async fn before(&self, read: &Read) -> Result<(Vec<Value>, bool), Error> {
        let head = self.follow(0).await?.head();
        let limit = read.limit.unwrap_or(usize::MAX);
        let end = read.from.as_ref().map_or(head + 1, |event| event.seq.min(head + 1));
        let mut span = FIRST_LOOK_BACK.max(limit as Seq);
        loop {
            let start = end.saturating_sub(span + 1);
            let (mut events, whole) = self.last_of(start, end, read).await?;
            if events.len() >= limit || start == 0 || !whole {
                let more = start > 0 || events.len() > limit || !whole;
                events.reverse();
                events.truncate(limit);
                return Ok((events, more));
            }
            span = span.saturating_mul(4);
        }
    }

    /// The last events between two, as many as one answer holds, and whether these are all.
    async fn last_of(
        &self,
        start: Seq,
        end: Seq,
        read: &Read,
    ) -> Result<(Vec<Value>, bool), Error> {
        let window = Read { limit: None, ..read.clone() };
        let mut found = self.between(start, end, &window).await?;
        if !found.more {
            return Ok((found.events, true));
        }
        let mut last = VecDeque::from(found.events);
        while found.more {
            found = self.between(found.upto, end, &window).await?;
            last.extend(found.events.drain(..));
            let mut bytes = 0;
            let fits = |event: &&Value| {
                bytes += event.to_string().len();
                bytes <= ANSWER_BYTES_LIMIT
            };
            let kept = last.iter().rev().take_while(fits).count().max(1);
            last.drain(..last.len().saturating_sub(kept));
        }
        Ok((last.into(), false))
    }

    /// The last event before a moment, looked for from an event backwards.
    pub(super) async fn before_moment(&self, head: Seq, moment: Time) -> Result<Seq, Error> {
        let mut span = FIRST_LOOK_BACK;
        loop {
            let start = head.saturating_sub(span);
            let first = self.first_from(start, moment).await?;
            if start == 0 || first.is_none_or(|first| first > start + 1) {
                return Ok(first.map_or(head, |first| first - 1));
            }
            span = span.saturating_mul(4);
        }
    }

    /// The first event after a number that happened at or after a moment.
    async fn first_from(&self, start: Seq, moment: Time) -> Result<Option<Seq>, Error> {
        let mut follow = self.follow(start).await?;
        while follow.position().seq < follow.head() {
            for item in follow.next().await?.unwrap_or_default() {
                let at = match &item {
                    Item::Event(record) => record.at,
                    Item::Text { at, .. } | Item::Progress { at, .. } => *at,
                };
                if at >= moment && place(&item) > 0 {
                    return Ok(Some(place(&item)));
                }
            }
        }
        Ok(None)
    }

    /// The context that is needed to encode the events after one.
    pub(super) async fn context(&self, after: Seq) -> Result<SessionContext, Error> {
        let mut span = FIRST_LOOK_BACK;
        loop {
            let start = after.saturating_sub(span);
            let context = self.read_up(start, after).await?;
            if start == 0 || context.is_complete() {
                return Ok(context);
            }
            span = span.saturating_mul(4);
        }
    }

    async fn read_up(&self, start: Seq, end: Seq) -> Result<SessionContext, Error> {
        let (default, current) = &self.models;
        let model = if start == 0 { default } else { current };
        let setting = (self.workspace.clone(), model.clone());
        let mut context = SessionContext::new(self.session.clone(), setting, start);
        if !self.turns {
            context.mark_idle();
        }
        let mut follow = self.follow(start).await?;
        while follow.position().seq < follow.head().min(end) {
            for item in follow.next().await?.unwrap_or_default() {
                if place(&item) > end {
                    break;
                }
                context.apply(&item);
                if let Item::Event(record) = &item {
                    context.finish(record);
                }
            }
        }
        Ok(context)
    }

    async fn follow(&self, after: Seq) -> Result<Box<dyn Follower>, Error> {
        self.sessions.follow(&self.session, Cursor::after(after)).await
    }
}

/// An event in the framing that the client reads.
fn in_framing(read: &Read, event: Value) -> Value {
    if read.original { legacy::stored(event) } else { event }
}

fn place(item: &Item) -> Seq {
    match item {
        Item::Event(record) => record.seq,
        Item::Text { seq, .. } => *seq,
        Item::Progress { .. } => 0,
    }
}
