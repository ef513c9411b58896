//! Tests that runs stay consistent whatever clients, workers and the clock do, and that their
//! format never changes.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use quintet_kernel::codec;
use quintet_kernel::id::{GeneratedId as _, RunId};
use quintet_kernel::run::{
    ControlAction, ControlMode, NewRun, Reporter, RunCommand, RunEnd, RunEvent, RunProgress,
    RunRecord, RunReport, RunState, RunStatus, Worker, begin, decode_event, encode_event, handle,
    replay,
};
use quintet_kernel::{Stamp, Time};
use serde_json::{Map, json};

/// One step of a random test; numbers select one of the available items.
#[derive(Clone, Debug)]
enum Op {
    Assign(u8),
    Dispatch { worker: u8, assignment: Option<u64>, turn: u8 },
    Control(ControlAction),
    Heartbeat(u8),
    Report { end: Option<bool>, by: Option<u8>, turn: Option<u8>, applies: bool, key: Option<u8> },
    Expire,
    Pass(u64),
}

fn some_op() -> impl Strategy<Value = Op> {
    let action = prop_oneof![
        3 => Just(ControlAction::Pause),
        3 => Just(ControlAction::Resume),
        1 => Just(ControlAction::Stop),
        2 => prop::sample::select(ControlMode::ALL.to_vec()).prop_map(ControlAction::SetMode),
    ];
    let few = || prop::option::of(0..3_u8);
    prop_oneof![
        4 => (0..3_u8).prop_map(Op::Assign),
        3 => (0..3_u8, prop::option::of(0..4_u64), 0..3_u8)
            .prop_map(|(worker, assignment, turn)| Op::Dispatch { worker, assignment, turn }),
        3 => action.prop_map(Op::Control),
        2 => (0..3_u8).prop_map(Op::Heartbeat),
        4 => (prop::option::weighted(0.1, any::<bool>()), few(), few(), any::<bool>(), few())
            .prop_map(|(end, by, turn, applies, key)| Op::Report { end, by, turn, applies, key }),
        2 => Just(Op::Expire),
        2 => (0..60_u64).prop_map(Op::Pass),
    ]
}

fn worker(number: u8) -> Worker {
    let status = if number == 2 { "busy" } else { "ready" };
    let (vm, user, session) = ("vm".into(), Some("u".into()), None);
    let (id, status) = (format!("w{number}"), status.to_owned());
    Worker { id, vm, user, session, agent: None, status, metadata: Map::new() }
}

fn new() -> NewRun {
    NewRun {
        workspace: "w".into(),
        agent: None,
        query: "q".into(),
        requested_by: None,
        files: Vec::new(),
        metadata: Map::from_iter([("n".to_owned(), json!([0.1, null]))]),
        conversation: None,
    }
}

fn command(op: &Op, run: &RunProgress) -> Option<RunCommand> {
    let name = |number: &u8| format!("w{number}");
    Some(match op {
        Op::Assign(number) => RunCommand::Assign { worker: worker(*number) },
        Op::Dispatch { worker, assignment, turn } => RunCommand::Dispatch {
            by: Reporter { worker: name(worker), assignment: *assignment },
            user: "u".into(),
            turn: format!("t{turn}"),
            conversation: None,
        },
        Op::Control(action) => {
            RunCommand::Control { action: *action, requested_by: None, bulk: false }
        }
        Op::Heartbeat(number) => RunCommand::Heartbeat { worker: worker(*number) },
        Op::Report { end, by, turn, applies, key } => RunCommand::Report(RunReport {
            kind: "x".into(),
            source: "s".into(),
            payload: Map::new(),
            end: end.map(|ok| if ok { RunEnd::Completed } else { RunEnd::Failed }),
            applied: run
                .controls
                .iter()
                .take(usize::from(*applies))
                .map(|it| it.id.clone())
                .collect(),
            by: by.as_ref().map(|by| Reporter { worker: name(by), assignment: None }),
            turn: turn.map(|turn| format!("t{turn}")),
            key: key.map(|key| format!("k{key}")),
        }),
        Op::Expire => RunCommand::Expire {
            heartbeat: Time::from_micros(0),
            grace: Duration::from_secs(60),
            most_losses: 3,
        },
        Op::Pass(_) => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_run_stays_consistent(ops in prop::collection::vec(some_op(), 0..80)) {
        let id = RunId::named("r".into());
        let mut now = Time::from_micros(0);
        let first = RunRecord { seq: 1, at: now, event: begin(&id, new()) };
        let mut records = vec![first.clone()];
        let mut run = RunState::begun(id.clone(), &first).unwrap();
        for (n, op) in ops.iter().enumerate() {
            if let Op::Pass(seconds) = op {
                now = now.after(Duration::from_secs(*seconds));
            }
            let Some(command) = command(op, &run.progress) else { continue };
            let before = run.clone();
            let stamp = Stamp::new(now, [n as u64, 1]);
            match handle(&mut run, command, &stamp) {
                Ok(Some(record)) => {
                    prop_assert_eq!(record.seq, before.progress.head + 1);
                    check_step(&before.progress, &run.progress, &record.event)?;
                    records.push(record);
                }
                Ok(None) | Err(_) => prop_assert_eq!(&before, &run),
            }
        }
        check_journal(&id, &records, &run)?;
    }

    #[test]
    fn no_bytes_make_the_codec_panic(version in 0..3_u16, bytes in any::<Vec<u8>>()) {
        let _ = decode_event(version, &bytes);
    }
}

/// Checks what holds for every event.
fn check_step(
    before: &RunProgress,
    after: &RunProgress,
    event: &RunEvent,
) -> Result<(), TestCaseError> {
    prop_assert!(after.assignments >= before.assignments, "assignment numbers only grow");
    prop_assert!(after.controls.len() <= 64);
    if !before.status.is_active() {
        prop_assert_eq!(after.status, before.status, "an ended run stays ended");
        let reported = matches!(event, RunEvent::Reported { .. });
        prop_assert!(reported, "late reports are only recorded");
    }
    if let RunEvent::Assigned { assignment, .. } = event {
        prop_assert!(before.binding.is_none(), "only a run without a worker is assigned");
        prop_assert_eq!(*assignment, before.assignments + 1);
    }
    if after.is_waiting() {
        prop_assert!(after.status == RunStatus::AwaitingWorker && after.binding.is_none());
    }
    prop_assert_eq!(after.finished.is_some(), !after.status.is_active());
    Ok(())
}

/// Checks that every prefix of a journal gives a valid run, and the whole journal the live run,
/// also after encoding.
fn check_journal(id: &RunId, records: &[RunRecord], run: &RunState) -> Result<(), TestCaseError> {
    let written: Vec<RunRecord> = records
        .iter()
        .map(|record| {
            let event = decode_event(codec::VERSION, &encode_event(&record.event)).unwrap();
            RunRecord { event, ..record.clone() }
        })
        .collect();
    prop_assert_eq!(&written[..], records);
    for end in 1..=written.len() {
        let prefix = replay(id, &written[..end]);
        prop_assert_eq!(prefix.as_ref().map(|run| run.progress.head), Some(end as u64));
    }
    let replayed = replay(id, &written);
    prop_assert_eq!(replayed.as_ref(), Some(run));
    let progress = serde_json::to_string(&run.progress).unwrap();
    let progress: RunProgress = serde_json::from_str(&progress).unwrap();
    prop_assert_eq!(&progress, &run.progress);
    prop_assert_eq!(replay(id, &[]), None);
    Ok(())
}

/// Every line of the golden file can be read and is written unchanged. Lines are only added.
#[test]
fn old_journals_of_runs_can_be_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/runs-v1.ndjson");
    let golden = std::fs::read_to_string(path).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for line in golden.lines() {
        let event = decode_event(1, line.as_bytes()).expect(line);
        assert_eq!(String::from_utf8(encode_event(&event)).unwrap(), line);
        kinds.insert(match event {
            RunEvent::Created(_) => 0,
            RunEvent::Assigned { .. } => 1,
            RunEvent::Dispatched { .. } => 2,
            RunEvent::Controlled { .. } => 3,
            RunEvent::Heartbeat { .. } => 4,
            RunEvent::Reported { .. } => 5,
            RunEvent::Lost { .. } => 6,
        });
    }
    assert_eq!(kinds.len(), 7, "every kind has a line");
    assert!(decode_event(codec::VERSION + 1, b"{}").is_err(), "newer formats are refused");
}
