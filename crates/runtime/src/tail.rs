//! The tail of a session that its followers share: the newest events, streamed text and
//! progress.
//!
//! The tail is bounded: a follower that is further behind reads the journal.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quintet_kernel::event::{Ended, Event, Record, Seq};
use quintet_kernel::follow::{Delta, Item, ItemReader};
use quintet_kernel::{CallId, Time, TurnId, codec};
use tokio::sync::watch;

/// The number of recent events and progress messages in memory, and the bytes of each.
const RECENT_EVENTS_LIMIT: usize = 64;
const PROGRESS_LIMIT: usize = 256;
const TAIL_BYTES_LIMIT: usize = 256 * 1024;

/// The tail of one session.
#[derive(Debug)]
pub(crate) struct Tail {
    inner: Mutex<Inner>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The last event that was published here; 0 while the session is not in memory.
    head: Seq,
    /// The newest events, each with its size in bytes.
    recent: VecDeque<(Arc<Record>, usize)>,
    recent_bytes: usize,
    /// Output of the open step that is not in `recent` yet.
    deltas: VecDeque<Delta>,
    progress: VecDeque<ProgressEntry>,
    progress_bytes: usize,
    progress_count: u64,
    gone: bool,
}

#[derive(Debug)]
struct ProgressEntry {
    number: u64,
    /// The last event when the progress was reported.
    after: Seq,
    turn: TurnId,
    call: CallId,
    text: Arc<str>,
    at: Time,
}

/// What the tail has for a follower.
pub(crate) enum TailRead {
    /// New items.
    Items(Vec<Item>),
    /// The position is before the tail: read the journal.
    Behind,
    /// Nothing yet.
    Nothing,
    /// The session was deleted.
    Gone,
}

impl Tail {
    pub(crate) fn new() -> Self {
        Self { inner: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// Signals when there may be more.
    pub(crate) fn watch(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// The session was loaded with its journal at `head`.
    pub(crate) fn begin(&self, head: Seq) {
        let mut inner = self.lock();
        *inner = Inner { head, progress_count: inner.progress_count, ..Inner::default() };
        drop(inner);
        self.changed.send_replace(());
    }

    /// Records that another node wrote the journal up to `head`; true if that is new. Followers read those events
    /// from the journal.
    pub(crate) fn moved_to(&self, head: Seq) -> bool {
        let mut inner = self.lock();
        let is_new = head > inner.head;
        if is_new {
            *inner = Inner { head, progress_count: inner.progress_count, ..Inner::default() };
        }
        drop(inner);
        if is_new {
            self.changed.send_replace(());
        }
        is_new
    }

    /// True if the session has followers.
    pub(crate) fn is_followed(&self) -> bool {
        self.changed.receiver_count() > 0
    }

    /// The session was deleted.
    pub(crate) fn end(&self) {
        self.lock().gone = true;
        self.changed.send_replace(());
    }

    /// Adds durable events, in order.
    pub(crate) fn publish(&self, records: &[Arc<Record>]) {
        let mut inner = self.lock();
        for record in records {
            inner.publish(record);
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// Adds streamed text.
    pub(crate) fn push(&self, delta: Delta) {
        self.lock().deltas.push_back(delta);
        self.changed.send_replace(());
    }

    /// Adds output of a running call.
    pub(crate) fn push_progress(&self, of: (TurnId, CallId), text: Arc<str>, at: Time) {
        let (turn, call) = of;
        let mut inner = self.lock();
        inner.progress_count += 1;
        let (number, after) = (inner.progress_count, inner.head);
        inner.progress_bytes += text.len();
        inner.progress.push_back(ProgressEntry { number, after, turn, call, text, at });
        while inner.progress.len() > PROGRESS_LIMIT || inner.progress_bytes > TAIL_BYTES_LIMIT {
            let Some(oldest) = inner.progress.pop_front() else { break };
            inner.progress_bytes -= oldest.text.len();
        }
        drop(inner);
        self.changed.send_replace(());
    }

    /// Number of progress entries so far; later followers start there.
    pub(crate) fn progress_count(&self) -> u64 {
        self.lock().progress_count
    }

    /// The next items of a follower; advances both of its positions.
    pub(crate) fn find(&self, reader: &mut ItemReader, progress_seen: &mut u64) -> TailRead {
        let inner = self.lock();
        if inner.gone {
            return TailRead::Gone;
        }
        let mut items = Vec::new();
        match reader.cursor().seq.cmp(&inner.head) {
            Ordering::Less if !inner.has_after(reader) => return TailRead::Behind,
            Ordering::Less => inner.events_after(reader, progress_seen, &mut items),
            Ordering::Equal => {
                inner.text_after(reader, &mut items);
                inner.progress_at(reader, progress_seen, &mut items);
            }
            // The follower has read an event in the journal that the session's task is about to
            // publish. The text here may belong to an earlier step.
            Ordering::Greater => {}
        }
        if items.is_empty() { TailRead::Nothing } else { TailRead::Items(items) }
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
            while self.deltas.front().is_some_and(|delta| delta_end(delta) <= end) {
                self.deltas.pop_front();
            }
        }
        let begins = matches!(record.event, Event::StepStarted { .. });
        if begins || record.event.ended() == Some(Ended::Step) {
            self.deltas.clear();
        }
        let size = codec::size(&record.event);
        self.recent_bytes += size;
        self.recent.push_back((Arc::clone(record), size));
        while self.recent.len() > RECENT_EVENTS_LIMIT || self.recent_bytes > TAIL_BYTES_LIMIT {
            let Some((_, size)) = self.recent.pop_front() else { break };
            self.recent_bytes -= size;
        }
    }

    fn has_after(&self, reader: &ItemReader) -> bool {
        self.recent.front().is_some_and(|(first, _)| first.seq <= reader.cursor().seq + 1)
    }

    fn events_after(
        &self,
        reader: &mut ItemReader,
        progress_seen: &mut u64,
        items: &mut Vec<Item>,
    ) {
        for (record, _) in &self.recent {
            if record.seq > reader.cursor().seq {
                self.progress_at(reader, progress_seen, items);
                reader.take(record, items);
            }
        }
    }

    fn text_after(&self, reader: &mut ItemReader, items: &mut Vec<Item>) {
        let seen = reader.cursor().offset;
        let first = self.deltas.partition_point(|delta| delta_end(delta) <= seen);
        items.extend(self.deltas.range(first..).filter_map(|delta| reader.take_text(delta)));
    }

    /// Progress that was reported between this event and the next. Followers that are past
    /// it do not receive it: the call may have ended by then.
    fn progress_at(&self, reader: &ItemReader, progress_seen: &mut u64, items: &mut Vec<Item>) {
        let (from, seq) = (*progress_seen, reader.cursor().seq);
        let unseen = self.progress.iter().filter(|entry| entry.number > from && entry.after == seq);
        items
            .extend(unseen.inspect(|entry| *progress_seen = entry.number).map(ProgressEntry::item));
    }
}

impl ProgressEntry {
    fn item(&self) -> Item {
        let (turn, call) = (self.turn.clone(), self.call.clone());
        Item::Progress { turn, call, text: Arc::clone(&self.text), at: self.at }
    }
}

fn delta_end(delta: &Delta) -> u64 {
    delta.offset + delta.text.len() as u64
}

#[cfg(test)]
mod tests;
