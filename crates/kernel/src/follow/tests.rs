//! Tests that every piece of text arrives once and with the same boundaries, whether live or from
//! the journal first.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Cursor, Delta, Item, ItemReader};
use crate::event::{Event, Record};
use crate::id::{GeneratedId, StepId, TurnId};
use crate::model::{Channel, ModelRef};
use crate::time::Time;

#[test]
fn a_cursor_round_trips_as_text() {
    for text in ["0", "7", "7.12", "18446744073709551615.18446744073709551615"] {
        assert_eq!(Cursor::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Cursor::parse("7.0"), Some(Cursor::after(7)));
    for bad in ["", ".", "7.", ".7", "-1", "+1", "7.1.2", " 7", "x", "18446744073709551616", "٣"] {
        assert_eq!(Cursor::parse(bad), None, "{bad:?}");
    }
}

#[test]
fn an_event_is_taken_once() {
    let mut reader = ItemReader::default();
    let record = started(3, 0);
    assert_eq!(taken(&mut reader, &record).len(), 1);
    assert_eq!(taken(&mut reader, &record).len(), 0);
    assert_eq!(taken(&mut reader, &started(2, 0)).len(), 0);
    assert_eq!(reader.cursor(), Cursor::after(3));
}

#[test]
fn text_arrives_live_or_from_the_journal_whichever_is_first() {
    let mut reader = ItemReader::from(Cursor::after(1));
    assert_eq!(shown(reader.take_text(&piece(0, 0, "Hel"))), ["1.3 Hel"]);
    let hello = appended(2, 0, (0, &["Hel", "lo"]));
    assert_eq!(shown(taken(&mut reader, &hello)), ["1.5 lo"]);
    assert_eq!(reader.cursor().to_string(), "2.5");
    assert!(reader.take_text(&piece(0, 3, "lo")).is_none());
    assert_eq!(shown(reader.take_text(&piece(0, 5, ", you"))), ["1.10 , you"]);
    assert!(taken(&mut reader, &appended(3, 0, (5, &[", you"]))).is_empty());
    assert_eq!(reader.cursor().to_string(), "3.10");
    assert_eq!(taken(&mut reader, &started(4, 1)).len(), 1);
    assert_eq!(shown(reader.take_text(&piece(1, 0, "Hi"))), ["4.2 Hi"]);
}

#[test]
fn text_without_lengths_is_one_piece() {
    let event = Event::TextAppended {
        turn: turn(),
        step: step(0),
        offset: 0,
        channel: Channel::Text,
        text: "Hello".into(),
        pieces: Vec::new(),
    };
    let record = Arc::new(Record { seq: 2, at: Time::default(), event });
    let items = taken(&mut Cursor::after(1).into(), &record);
    assert_eq!(shown(items), ["1.5 Hello"]);
}

#[test]
fn lengths_that_do_not_fit_lose_nothing() {
    for lengths in [vec![3], vec![0, 5], vec![2, 9], vec![1, 1, 1], vec![7, 1], vec![u32::MAX]] {
        let text: Vec<_> = super::cut("aé€b", &lengths).collect();
        assert_eq!(text.concat(), "aé€b", "{lengths:?}");
    }
    assert_eq!(super::cut("aé€b", &[1, 2, 3, 1]).collect::<Vec<_>>(), ["a", "é", "€", "b"]);
    assert_eq!(super::cut("", &[1]).count(), 0);
}

#[test]
fn an_offset_inside_a_piece_gives_the_rest_of_it() {
    let mut reader = ItemReader::from(Cursor { seq: 1, offset: 2 });
    let record = appended(2, 0, (0, &["Hel", "lo"]));
    assert_eq!(shown(taken(&mut reader, &record)), ["1.3 l", "1.5 lo"]);
}

#[test]
fn an_offset_inside_a_character_gives_the_whole_character() {
    for offset in 0..8 {
        let mut reader = ItemReader::from(Cursor { seq: 1, offset });
        let rest = text(&taken(&mut reader, &appended(2, 0, (0, &["aé€b"]))));
        assert!("aé€b".ends_with(&rest), "{rest:?}");
        assert!(rest.len() as u64 >= 7_u64.saturating_sub(offset), "{rest:?} at {offset}");
    }
    let mut far = ItemReader::from(Cursor { seq: 1, offset: u64::MAX });
    assert!(taken(&mut far, &appended(2, 0, (u64::MAX, &["x"]))).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_piece_arrives_once_with_the_same_boundaries(
        // Pieces of each step, and for each piece whether the follower looks right after it, whether
        // the text so far is made durable then, and whether the follower looks after that.
        steps in prop::collection::vec(
            prop::collection::vec(("[aé€😀]{1,5}", any::<[bool; 3]>()), 0..8),
            1..3,
        ),
    ) {
        let mut session = Session::default();
        let mut follower = Follower::default();
        let mut expected = Vec::new();
        for (number, pieces) in steps.iter().enumerate() {
            session.begin(number);
            let (begun, mut end) = (session.journal.len(), 0);
            for (piece, [before, durable, after]) in pieces {
                session.write(piece);
                end += piece.len();
                expected.push(format!("{begun}.{end} {piece}"));
                if *before { follower.poll(&session) }
                if *durable { session.flush() }
                if *after { follower.poll(&session) }
            }
            session.flush();
        }
        follower.poll(&session);
        prop_assert_eq!(shown(follower.items.clone()), &expected[..]);
        let mut late = Follower::default();
        late.poll(&session);
        prop_assert_eq!(shown(late.items), &expected[..]);
        for (position, received) in &follower.positions {
            let cursor = Cursor::parse(&position.to_string()).unwrap();
            let mut again = Follower { reader: cursor.into(), ..Follower::default() };
            again.poll(&session);
            prop_assert_eq!(shown(again.items), &expected[*received..], "resumed at {}", position);
        }
    }

    #[test]
    fn no_offset_panics(at in 0..20_u64, from in 0..20_u64, written in "[aé€😀]{0,5}") {
        let mut reader = ItemReader::from(Cursor { seq: 1, offset: at });
        reader.take_text(&piece(0, from, &written));
        taken(&mut reader, &appended(2, 0, (from, &[&written])));
    }
}

/// A session as its followers see it: the journal, and the text that is not in it yet.
#[derive(Default)]
struct Session {
    step: usize,
    journal: Vec<Arc<Record>>,
    flying: Vec<Delta>,
    written: u64,
}

impl Session {
    fn begin(&mut self, step: usize) {
        (self.step, self.written) = (step, 0);
        let seq = self.seq();
        self.journal.push(started(seq, step));
    }

    fn write(&mut self, text: &str) {
        self.flying.push(piece(self.step, self.written, text));
        self.written += text.len() as u64;
    }

    fn flush(&mut self) {
        let Some(offset) = self.flying.first().map(|piece| piece.offset) else { return };
        let pieces: Vec<_> = self.flying.drain(..).map(|piece| piece.text).collect();
        let pieces: Vec<&str> = pieces.iter().map(|text| &**text).collect();
        let seq = self.seq();
        self.journal.push(appended(seq, self.step, (offset, &pieces)));
    }

    fn seq(&self) -> u64 {
        self.journal.len() as u64 + 1
    }
}

#[derive(Default)]
struct Follower {
    reader: ItemReader,
    items: Vec<Item>,
    /// Positions at which the follower could be cut off, and the number of pieces before each.
    positions: Vec<(Cursor, usize)>,
}

impl Follower {
    /// Reads the journal to its end, then the text in flight, as the runtime does.
    fn poll(&mut self, session: &Session) {
        let mut items = Vec::new();
        session.journal.iter().for_each(|record| self.reader.take(record, &mut items));
        items.extend(session.flying.iter().filter_map(|piece| self.reader.take_text(piece)));
        for item in items {
            let position = match &item {
                Item::Text { position, .. } => *position,
                Item::Event(record) => Cursor::after(record.seq),
                Item::Progress { .. } => continue,
            };
            self.items.push(item);
            self.positions.push((position, shown(self.items.clone()).len()));
        }
    }
}

fn taken(reader: &mut ItemReader, record: &Arc<Record>) -> Vec<Item> {
    let mut items = Vec::new();
    reader.take(record, &mut items);
    items
}

/// The pieces of text in these items, each with its position.
fn shown(items: impl IntoIterator<Item = Item>) -> Vec<String> {
    let piece = |item| match item {
        Item::Text { position, text, .. } => Some(format!("{position} {text}")),
        Item::Event(_) | Item::Progress { .. } => None,
    };
    items.into_iter().filter_map(piece).collect()
}

fn text(items: &[Item]) -> String {
    let text = |item: &Item| match item {
        Item::Text { text, .. } => Some(text.to_string()),
        Item::Event(_) | Item::Progress { .. } => None,
    };
    items.iter().filter_map(text).collect()
}

fn step(number: usize) -> StepId {
    StepId::named(format!("step_{number}"))
}

fn turn() -> TurnId {
    TurnId::named("turn_1".into())
}

fn piece(of: usize, offset: u64, text: &str) -> Delta {
    let (turn, step, channel, at) = (turn(), step(of), Channel::Text, Time::default());
    Delta { turn, step, offset, channel, text: text.into(), at }
}

fn appended(seq: u64, of: usize, (offset, pieces): (u64, &[&str])) -> Arc<Record> {
    let (turn, step, channel, text) = (turn(), step(of), Channel::Text, pieces.concat());
    let pieces = pieces.iter().map(|piece| piece.len() as u32).collect();
    let event = Event::TextAppended { turn, step, offset, channel, text, pieces };
    Arc::new(Record { seq, at: Time::default(), event })
}

fn started(seq: u64, of: usize) -> Arc<Record> {
    let model = ModelRef::parse("fake/a").unwrap();
    let event = Event::StepStarted {
        turn: turn(),
        step: step(of),
        model,
        context_window: None,
        shortened: None,
    };
    Arc::new(Record { seq, at: Time::default(), event })
}
