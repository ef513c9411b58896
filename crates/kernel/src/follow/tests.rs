//! Every byte once, in whatever order its signal and its event come.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Cursor, Item, Piece};
use crate::event::{Event, Record};
use crate::id::{Fresh, StepId, TurnId};
use crate::model::{Channel, ModelRef};
use crate::time::Time;

#[test]
fn a_cursor_is_read_as_it_is_written() {
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
    let mut cursor = Cursor::START;
    let record = started(3, 0);
    assert!(cursor.take(&record).is_some());
    assert!(cursor.take(&record).is_none());
    assert!(cursor.take(&started(2, 0)).is_none());
    assert_eq!(cursor, Cursor::after(3));
}

#[test]
fn the_signal_or_the_event_whichever_comes_first() {
    let mut cursor = Cursor::after(1);
    assert_eq!(text(cursor.take_text(&piece(0, 0, "Hel"))), "Hel");
    assert_eq!(cursor.to_string(), "1.3");
    assert_eq!(text(cursor.take(&appended(2, (0, 0, "Hello")))), "lo");
    assert_eq!(text(cursor.take_text(&piece(0, 3, "lo"))), "");
    assert_eq!(text(cursor.take_text(&piece(0, 3, "lo, you"))), ", you");
    assert_eq!(text(cursor.take(&appended(3, (0, 5, ", you")))), "");
    assert_eq!(cursor.to_string(), "3.10");
    assert!(cursor.take(&started(4, 1)).is_some());
    assert_eq!(text(cursor.take_text(&piece(1, 0, "Hi"))), "Hi");
}

#[test]
fn an_offset_inside_a_character_gives_the_whole_character() {
    for offset in 0..8 {
        let mut cursor = Cursor { seq: 1, offset };
        let rest = text(cursor.take(&appended(2, (0, 0, "aé€b"))));
        assert!("aé€b".ends_with(&rest), "{rest:?}");
        assert!(rest.len() as u64 >= 7_u64.saturating_sub(offset), "{rest:?} at {offset}");
    }
    let mut far = Cursor { seq: 1, offset: u64::MAX };
    assert_eq!(text(far.take(&appended(2, (0, u64::MAX, "x")))), "");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_byte_comes_once(
        // Pieces of each step, and for each piece whether the follower looks right after it, whether
        // the text so far is made durable then, and whether the follower looks after that.
        steps in prop::collection::vec(
            prop::collection::vec(("[aé€😀]{1,5}", any::<[bool; 3]>()), 0..8),
            1..3,
        ),
    ) {
        let mut session = Session::default();
        let mut follower = Follower::default();
        for (number, pieces) in steps.iter().enumerate() {
            session.begin(number);
            for (piece, [before, durable, after]) in pieces {
                session.write(piece);
                if *before { follower.poll(&session) }
                if *durable { session.flush() }
                if *after { follower.poll(&session) }
            }
            session.flush();
        }
        follower.poll(&session);
        let whole: String = steps.iter().flatten().map(|(piece, _)| piece.as_str()).collect();
        prop_assert_eq!(&follower.heard, &whole);
        for (position, heard) in &follower.positions {
            let cursor = Cursor::parse(&position.to_string()).unwrap();
            let mut again = Follower { cursor, ..Follower::default() };
            again.poll(&session);
            prop_assert_eq!(&again.heard, &whole[*heard..], "resumed at {}", position);
        }
    }

    #[test]
    fn no_offset_panics(at in 0..20_u64, from in 0..20_u64, written in "[aé€😀]{0,5}") {
        let mut cursor = Cursor { seq: 1, offset: at };
        cursor.take_text(&piece(0, from, &written));
        cursor.take(&appended(2, (0, from, &written)));
    }
}

/// A session as its followers see it: the journal, and the text that is not in it yet.
#[derive(Default)]
struct Session {
    step: usize,
    journal: Vec<Arc<Record>>,
    flying: Vec<Piece>,
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
        let text: String = self.flying.drain(..).map(|piece| piece.text.to_string()).collect();
        let seq = self.seq();
        self.journal.push(appended(seq, (self.step, offset, &text)));
    }

    fn seq(&self) -> u64 {
        self.journal.len() as u64 + 1
    }
}

#[derive(Default)]
struct Follower {
    cursor: Cursor,
    heard: String,
    /// Where it could have been cut off, and how much it had heard.
    positions: Vec<(Cursor, usize)>,
}

impl Follower {
    /// Reads the journal to its end, then what is in flight, as the runtime does.
    fn poll(&mut self, session: &Session) {
        for record in &session.journal {
            let item = self.cursor.take(record);
            self.hear(item);
        }
        for piece in &session.flying {
            let item = self.cursor.take_text(piece);
            self.hear(item);
        }
    }

    fn hear(&mut self, item: Option<Item>) {
        if let Some(Item::Text { position, .. }) = &item {
            assert_eq!(*position, self.cursor);
        }
        self.heard.push_str(&text(item));
        self.positions.push((self.cursor, self.heard.len()));
    }
}

fn text(item: Option<Item>) -> String {
    match item {
        Some(Item::Text { text, .. }) => text.to_string(),
        Some(Item::Event(_) | Item::Progress { .. }) | None => String::new(),
    }
}

fn step(number: usize) -> StepId {
    StepId::named(format!("step_{number}"))
}

fn turn() -> TurnId {
    TurnId::named("turn_1".into())
}

fn piece(of: usize, offset: u64, text: &str) -> Piece {
    let (turn, step, channel, at) = (turn(), step(of), Channel::Text, Time::default());
    Piece { turn, step, offset, channel, text: text.into(), at }
}

fn appended(seq: u64, (of, offset, text): (usize, u64, &str)) -> Arc<Record> {
    let (turn, step, channel, text) = (turn(), step(of), Channel::Text, text.into());
    let event = Event::TextAppended { turn, step, offset, channel, text };
    Arc::new(Record { seq, at: Time::default(), event })
}

fn started(seq: u64, of: usize) -> Arc<Record> {
    let model = ModelRef::parse("fake/a").unwrap();
    let event = Event::StepStarted { turn: turn(), step: step(of), model };
    Arc::new(Record { seq, at: Time::default(), event })
}
