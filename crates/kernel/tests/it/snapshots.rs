//! States that are written down: what they are made of, and which are read.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::event::Record;
use quintet_kernel::port::Snapshot;
use quintet_kernel::{SessionId, State, Time, snapshot};
use serde_json::Value;

use crate::golden::{samples, updating};
use crate::world::rules;

fn id(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

/// A session after each of the events that there are; they need not make sense together.
fn states() -> Vec<State> {
    let mut state = State::new(id("s"), Arc::new(rules()));
    let events = samples().into_iter().zip(1..);
    let after = |(event, seq)| {
        state.replay([&Record { seq, at: Time::from_micros(seq as i64), event }]);
        state.clone()
    };
    events.map(after).collect()
}

#[test]
fn what_a_state_is_made_of_does_not_change_by_itself() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/snapshot-shape.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let (number, known) = golden.split_once('\n').unwrap_or_default();
    let mut fields = BTreeSet::new();
    for state in states() {
        let body = serde_json::from_slice(&snapshot::take(&state).body).unwrap();
        note_fields(&body, "", &mut fields);
    }
    let fields = fields.into_iter().map(|field| field + "\n").collect::<String>();
    let today = format!("format {}", snapshot::SNAPSHOT_FORMAT);
    if number == today {
        assert_eq!(known, fields, "count snapshot::FORMAT up, then run with UPDATE_GOLDEN=1");
    } else {
        assert!(updating(), "UPDATE_GOLDEN=1 writes {} for {today}", path.display());
        std::fs::write(path, format!("{today}\n{fields}")).unwrap();
    }
}

/// Every path to a value; where it goes through a list or by a number, any of them.
fn note_fields(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                let is_number = name.bytes().all(|b| b.is_ascii_digit());
                let name = if is_number { "*" } else { name };
                note_fields(value, &format!("{path}.{name}"), fields);
            }
        }
        Value::Array(inner) => {
            inner.iter().for_each(|value| note_fields(value, &format!("{path}[]"), fields));
        }
        Value::String(text) if path.ends_with("phase") || path.ends_with("status") => {
            fields.insert(format!("{path} = {text}"));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            fields.insert(path.into());
        }
    }
}

#[test]
fn a_state_is_the_same_when_it_is_read_back() {
    let rules = Arc::new(rules());
    for state in states() {
        let taken = snapshot::take(&state);
        assert_eq!(taken.seq, state.head);
        assert_eq!(snapshot::restore(&taken, &state.id, &rules), Some(state));
    }
}

#[test]
fn what_cannot_be_read_is_passed_over() {
    let rules = Arc::new(rules());
    let taken = snapshot::take(states().last().unwrap());
    let restored = |snapshot: &Snapshot| snapshot::restore(snapshot, &id("s"), &rules).is_some();
    assert!(restored(&taken));
    assert!(!restored(&Snapshot { format: "0.0.0/1".into(), ..taken.clone() }));
    assert!(!restored(&Snapshot { seq: taken.seq + 1, ..taken.clone() }));
    assert!(!restored(&Snapshot { body: taken.body[1..].to_vec(), ..taken.clone() }));
    assert!(!restored(&Snapshot { body: b"{}".to_vec(), ..taken }));
}

#[test]
fn a_fork_goes_by_its_own_name() {
    let taken = snapshot::take(states().last().unwrap());
    let fork = snapshot::restore(&taken, &id("t"), &Arc::new(rules())).unwrap();
    assert_eq!(fork.id, id("t"));
}

#[test]
fn a_snapshot_is_worth_it_if_much_is_new() {
    for (head, last, due) in [
        (999, 0, false),
        (1000, 0, true),
        (1999, 1000, false),
        (2000, 1000, true),
        (10_000, 8000, false),
        (10_000, 7500, true),
        (5, 9, false),
    ] {
        assert_eq!(snapshot::is_due(head, last), due, "{head} after {last}");
    }
}
