//! Reads a session's events from any position; costs only what is read.

use std::collections::VecDeque;

use quintet_kernel::event::Seq;
use quintet_kernel::port::{Error, Follower, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, Time};
use serde_json::Value;

use super::legacy;
use super::request::EventQuery;
use super::session_context::SessionContext;
use super::stored_event::event;

/// Events that are read first when looking back for the turn that is open at an event.
const FIRST_LOOK_BACK: Seq = 64;
/// Bytes of one response.
const RESPONSE_BYTES_LIMIT: usize = 8 * 1024 * 1024;

/// A range of events, in order.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) events: Vec<Value>,
    /// True if more events follow.
    pub(super) more: bool,
    /// The encoder's context after the last event.
    pub(super) context: SessionContext,
    /// The last event that was read, also if it was not of a requested type.
    pub(super) upto: Seq,
}

impl Events {
    /// The position from which a follower neither misses nor repeats anything.
    pub(super) fn cursor(&self) -> Cursor {
        Cursor { seq: self.upto, offset: self.context.written }
    }
}

/// A session whose events are read.
pub(super) struct History<'a> {
    pub(super) sessions: &'a dyn Sessions,
    pub(super) session: SessionId,
    pub(super) workspace: String,
    /// The default model, and that of this session.
    pub(super) models: (String, String),
    /// False if the session has no turns, so that none has to be looked for.
    pub(super) has_turns: bool,
}

impl History<'_> {
    /// Events after a sequence, oldest first.
    pub(super) async fn after(&self, after: Seq, query: &EventQuery) -> Result<Events, Error> {
        // Fails if the sequence is after the head.
        self.follow(after).await?;
        self.between(after, Seq::MAX, query).await
    }

    /// Events between two sequences, oldest first.
    async fn between(&self, after: Seq, end: Seq, query: &EventQuery) -> Result<Events, Error> {
        let (context, upto) = self.context_at_event(after).await?;
        let mut follow = self.follow(upto).await?;
        let mut found = Events { events: Vec::new(), more: false, context, upto };
        // Text counts as read once an event follows it; until then a client may have only some of its
        // deltas.
        let mut text = Vec::new();
        let (limit, mut bytes) = (query.limit.unwrap_or(usize::MAX), 0);
        while follow.position().seq < follow.head() {
            for item in follow.next().await?.unwrap_or_default() {
                if sequence(&item) >= end {
                    return Ok(found);
                }
                let Item::Event(record) = &item else {
                    text.push(item);
                    continue;
                };
                if found.events.len() >= limit || bytes > RESPONSE_BYTES_LIMIT {
                    found.more = true;
                    return Ok(found);
                }
                text.drain(..).for_each(|text| found.context.apply(&text));
                found.context.apply(&item);
                let event = in_framing(query, event(&found.context, record));
                found.context.finish(record);
                found.upto = record.seq;
                if query.includes(&event) {
                    bytes += event.to_string().len();
                    found.events.push(event);
                }
            }
        }
        Ok(found)
    }

    /// The context at an event, and the event's sequence. If the sequence is one of text in flight, the
    /// event before the text is used.
    async fn context_at_event(&self, after: Seq) -> Result<(SessionContext, Seq), Error> {
        let context = self.context(after).await?;
        if context.last >= after {
            return Ok((context, after));
        }
        let event = context.last;
        Ok((self.context(event).await?, event))
    }

    /// The newest events before a sequence, or of the whole session, newest first.
    pub(super) async fn before(&self, query: &EventQuery) -> Result<(Vec<Value>, bool), Error> {
        let head = self.follow(0).await?.head();
        let limit = query.limit.unwrap_or(usize::MAX);
        let end = query.from.as_ref().map_or(head + 1, |event| event.seq.min(head + 1));
        let mut span = FIRST_LOOK_BACK.max(limit as Seq);
        loop {
            let start = end.saturating_sub(span + 1);
            let (mut events, whole) = self.last_of(start, end, query).await?;
            if events.len() >= limit || start == 0 || !whole {
                let more = start > 0 || events.len() > limit || !whole;
                events.reverse();
                events.truncate(limit);
                return Ok((events, more));
            }
            span = span.saturating_mul(4);
        }
    }

    /// The last events between two sequences, as many as one response holds, and whether these are all.
    async fn last_of(
        &self,
        start: Seq,
        end: Seq,
        query: &EventQuery,
    ) -> Result<(Vec<Value>, bool), Error> {
        let window = EventQuery { limit: None, ..query.clone() };
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
                bytes <= RESPONSE_BYTES_LIMIT
            };
            let kept = last.iter().rev().take_while(fits).count().max(1);
            last.drain(..last.len().saturating_sub(kept));
        }
        Ok((last.into(), false))
    }

    /// The last event before a time, searched backwards from an event.
    pub(super) async fn before_time(&self, head: Seq, time: Time) -> Result<Seq, Error> {
        let mut span = FIRST_LOOK_BACK;
        loop {
            let start = head.saturating_sub(span);
            let first = self.first_from(start, time).await?;
            if start == 0 || first.is_none_or(|first| first > start + 1) {
                return Ok(first.map_or(head, |first| first - 1));
            }
            span = span.saturating_mul(4);
        }
    }

    /// The first event after a sequence that happened at or after a time.
    async fn first_from(&self, start: Seq, time: Time) -> Result<Option<Seq>, Error> {
        let mut follow = self.follow(start).await?;
        while follow.position().seq < follow.head() {
            for item in follow.next().await?.unwrap_or_default() {
                let at = match &item {
                    Item::Event(record) => record.at,
                    Item::Text { at, .. } | Item::Progress { at, .. } => *at,
                };
                if at >= time && sequence(&item) > 0 {
                    return Ok(Some(sequence(&item)));
                }
            }
        }
        Ok(None)
    }

    /// The context for encoding the events after a sequence.
    pub(super) async fn context(&self, after: Seq) -> Result<SessionContext, Error> {
        let mut span = FIRST_LOOK_BACK;
        loop {
            let start = after.saturating_sub(span);
            let context = self.read_context(start, after).await?;
            if start == 0 || context.is_complete() {
                return Ok(context);
            }
            span = span.saturating_mul(4);
        }
    }

    async fn read_context(&self, start: Seq, end: Seq) -> Result<SessionContext, Error> {
        let (default, current) = &self.models;
        let model = if start == 0 { default } else { current };
        let setting = (self.workspace.clone(), model.clone());
        let mut context = SessionContext::new(self.session.clone(), setting, start);
        if !self.has_turns {
            context.mark_idle();
        }
        let mut follow = self.follow(start).await?;
        while follow.position().seq < follow.head().min(end) {
            for item in follow.next().await?.unwrap_or_default() {
                if sequence(&item) > end {
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

/// The event in the framing of the client.
fn in_framing(query: &EventQuery, event: Value) -> Value {
    if query.original { legacy::stored(event) } else { event }
}

fn sequence(item: &Item) -> Seq {
    match item {
        Item::Event(record) => record.seq,
        Item::Text { seq, .. } => *seq,
        Item::Progress { .. } => 0,
    }
}
