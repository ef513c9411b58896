//! The end of a session as its followers see it: the newest events and the text in flight.
//!
//! Bounded: a follower that is further behind than this reads the journal instead.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::event::{Event, Over, Record, Seq};
use quintet_kernel::follow::{Item, ItemReader, Piece};
use quintet_kernel::{CallId, Time, TurnId, codec};
use tokio::sync::watch;

/// How many events and how many words of progress are at hand, and how many bytes each of them take.
const EVENTS: usize = 64;
const WORDS: usize = 256;
const BYTES: usize = 256 * 1024;

/// The end of one session.
#[derive(Debug)]
pub(crate) struct Tail {
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last event that was published here; 0 as long as the session sleeps.
    head: Seq,
    /// The newest events, each with its size.
    recent: VecDeque<(Arc<Record>, usize)>,
    recent_bytes: usize,
    /// Output of the open step that is not in `recent` yet.
    pieces: VecDeque<Piece>,
    words: VecDeque<Word>,
    words_bytes: usize,
    spoken: u64,
    gone: bool,
}

#[derive(Debug)]
struct Word {
    number: u64,
    /// The last event when it was spoken.
    after: Seq,
    turn: TurnId,
    call: CallId,
    text: Arc<str>,
    at: Time,
}

/// What the tail has for a follower.
pub(crate) enum Found {
    /// This.
    Items(Vec<Item>),
    /// The position is before the window: read the journal.
    Behind,
    /// Nothing yet.
    Nothing,
    /// Nothing ever: the session was taken away.
    Gone,
}

impl Tail {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// Wakes whenever there may be more.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The session woke up with its journal at `head`.
    pub(crate) fn begin(&self, head: Seq) {
        let mut inner = self.lock();
        *inner = Inner { head, spoken: inner.spoken, ..Inner::default() };
        drop(inner);
        self.changed.send_replace(());
    }

    /// Another node wrote the journal up to `head`; says whether that is news. What comes after a
    /// follower's position is in the journal alone.
    pub(crate) fn moved_to(&self, head: Seq) -> bool {
        let mut inner = self.lock();
        let is_new = head > inner.head;
        if is_new {
            *inner = Inner { head, spoken: inner.spoken, ..Inner::default() };
        }
        drop(inner);
        if is_new {
            self.changed.send_replace(());
        }
        is_new
    }

    /// True if somebody follows the session.
    pub(crate) fn is_followed(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// The session was taken away.
    pub(crate) fn end(&self) {
        self.lock().gone = true;
        self.changed.send_replace(());
    }

    /// Durable events, in order.
    pub(crate) fn publish(&self, records: &[Arc<Record>]) {
        let mut inner = self.lock();
        for record in records {
            inner.publish(record);
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// Text in flight.
    pub(crate) fn push(&self, piece: Piece) {
        self.lock().pieces.push_back(piece);
        self.changed.send_replace(());
    }

    /// A word of a running call.
    pub(crate) fn say(&self, of: (TurnId, CallId), text: Arc<str>, at: Time) {
        let (turn, call) = of;
        let mut inner = self.lock();
        inner.spoken += 1;
        let (number, after) = (inner.spoken, inner.head);
        inner.words_bytes += text.len();
        inner.words.push_back(Word { number, after, turn, call, text, at });
        while inner.words.len() > WORDS || inner.words_bytes > BYTES {
            let Some(oldest) = inner.words.pop_front() else { break };
            inner.words_bytes -= oldest.text.len();
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// How many words were spoken; who comes later does not hear them.
    pub(crate) fn spoken(&self) -> u64 {
        self.lock().spoken
    }

    /// What comes next for a follower; both of its positions move along.
    pub(crate) fn find(&self, reader: &mut ItemReader, heard: &mut u64) -> Found {
        let inner = self.lock();
        if inner.gone {
            return Found::Gone;
        }
        let mut items = Vec::new();
        match reader.cursor().seq.cmp(&inner.head) {
            Ordering::Less if !inner.has_after(reader) => return Found::Behind,
            Ordering::Less => inner.events_after(reader, heard, &mut items),
            Ordering::Equal => {
                inner.text_after(reader, &mut items);
                inner.words_at(reader, heard, &mut items);
            }
            // It read in the journal what the session's task is only about to publish. The text here
            // may be of an earlier step.
            Ordering::Greater => {}
        }
        if items.is_empty() { Found::Nothing } else { Found::Items(items) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn publish(&mut self, record: &Arc<Record>) {
        self.head = record.seq;
        if let Event::TextAppended { offset, text, .. } = &record.event {
            let end = offset + text.len() as u64;
            while self.pieces.front().is_some_and(|piece| end_of(piece) <= end) {
                self.pieces.pop_front();
            }
        }
        let begins = matches!(record.event, Event::StepStarted { .. });
        if begins || record.event.over() == Some(Over::Step) {
            self.pieces.clear();
        }
        let size = codec::size(&record.event);
        self.recent_bytes += size;
        self.recent.push_back((Arc::clone(record), size));
        while self.recent.len() > EVENTS || self.recent_bytes > BYTES {
            let Some((_, size)) = self.recent.pop_front() else { break };
            self.recent_bytes -= size;
        }
    }

    fn has_after(&self, reader: &ItemReader) -> bool {
        self.recent.front().is_some_and(|(first, _)| first.seq <= reader.cursor().seq + 1)
    }

    fn events_after(&self, reader: &mut ItemReader, heard: &mut u64, items: &mut Vec<Item>) {
        for (record, _) in &self.recent {
            if record.seq > reader.cursor().seq {
                self.words_at(reader, heard, items);
                reader.take(record, items);
            }
        }
    }

    fn text_after(&self, reader: &mut ItemReader, items: &mut Vec<Item>) {
        let seen = reader.cursor().offset;
        let first = self.pieces.partition_point(|piece| end_of(piece) <= seen);
        items.extend(self.pieces.range(first..).filter_map(|piece| reader.take_text(piece)));
    }

    /// Words that were spoken between this event and the next. Who passed it does not hear them:
    /// their call may be over by then.
    fn words_at(&self, reader: &ItemReader, heard: &mut u64, items: &mut Vec<Item>) {
        let (from, seq) = (*heard, reader.cursor().seq);
        let unheard = self.words.iter().filter(|word| word.number > from && word.after == seq);
        items.extend(unheard.inspect(|word| *heard = word.number).map(Word::item));
    }
}

impl Word {
    fn item(&self) -> Item {
        let (turn, call) = (self.turn.clone(), self.call.clone());
        Item::Progress { turn, call, text: Arc::clone(&self.text), at: self.at }
    }
}

fn end_of(piece: &Piece) -> u64 {
    piece.offset + piece.text.len() as u64
}

#[cfg(test)]
mod tests;
