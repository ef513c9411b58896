//! Tests of snapshots: their fields, and which ones can be restored.

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

/// States after every kind of event; the events need not make sense together.
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
fn the_fields_of_a_snapshot_change_only_with_its_format() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/snapshot-shape.txt");
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let (number, known) = golden.split_once('\n').unwrap_or_default();
    let mut fields = BTreeSet::new();
    for state in states() {
        let body = serde_json::from_slice(&snapshot::take(&state).body).unwrap();
        collect_fields(&body, "", &mut fields);
    }
    let fields = fields.into_iter().map(|field| field + "\n").collect::<String>();
    let today = format!("format {}", snapshot::SNAPSHOT_FORMAT);
    if number == today {
        assert_eq!(known, fields, "increment SNAPSHOT_FORMAT, then run with UPDATE_GOLDEN=1");
    } else {
        assert!(updating(), "UPDATE_GOLDEN=1 writes {} for {today}", path.display());
        std::fs::write(path, format!("{today}\n{fields}")).unwrap();
    }
}

/// Collects every path to a value; list indexes and numeric keys are replaced by a placeholder.
fn collect_fields(value: &Value, path: &str, fields: &mut BTreeSet<String>) {
    match value {
        Value::Object(inner) => {
            for (name, value) in inner {
                let is_number = name.bytes().all(|b| b.is_ascii_digit());
                let name = if is_number { "*" } else { name };
                collect_fields(value, &format!("{path}.{name}"), fields);
            }
        }
        Value::Array(inner) => {
            inner.iter().for_each(|value| collect_fields(value, &format!("{path}[]"), fields));
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
fn a_restored_state_is_equal() {
    let rules = Arc::new(rules());
    for state in states() {
        let taken = snapshot::take(&state);
        assert_eq!(taken.seq, state.head);
        assert_eq!(snapshot::restore(&taken, &state.id, &rules), Some(state));
    }
}

#[test]
fn an_unreadable_snapshot_is_ignored() {
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
fn a_fork_has_its_own_id() {
    let taken = snapshot::take(states().last().unwrap());
    let fork = snapshot::restore(&taken, &id("t"), &Arc::new(rules())).unwrap();
    assert_eq!(fork.id, id("t"));
}

#[test]
fn a_snapshot_is_due_when_many_events_are_new() {
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
