//! Tests of single runs: one command per line, and the status after each event.

use std::time::Duration;

use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};

use super::*;
use crate::id::{GeneratedId as _, RunId};
use crate::time::Time;

const LEASE_GRACE: Duration = Duration::from_secs(60);

/// A run to which the lines of a story are applied. `+N` advances the clock by N seconds.
struct Story {
    state: RunState,
    records: Vec<RunRecord>,
    seconds: u64,
    log: Vec<String>,
}

impl Story {
    fn new() -> Self {
        let new = NewRun {
            workspace: "w".into(),
            agent: None,
            query: "do it".into(),
            requested_by: None,
            files: Vec::new(),
            metadata: Map::new(),
            conversation: None,
        };
        let id = RunId::named("r".into());
        let first = RunRecord { seq: 1, at: Time::from_micros(0), event: begin(&id, new) };
        let state = RunState::begun(id, &first).unwrap();
        Self { state, records: vec![first], seconds: 0, log: Vec::new() }
    }

    fn play(&mut self, line: &str) {
        if let Some(seconds) = line.strip_prefix('+') {
            self.seconds += seconds.parse::<u64>().unwrap();
            return;
        }
        let at = Time::from_micros(0).after(Duration::from_secs(self.seconds));
        let stamp = Stamp::new(at, [self.state.progress.head, 0]);
        let before = self.state.clone();
        let outcome = handle(&mut self.state, command(line, &before), &stamp);
        let run = &self.state.progress;
        let result = match &outcome {
            Ok(Some(record)) => {
                self.records.push(record.clone());
                let bound = run.binding.as_ref();
                let bound = bound.map(|it| format!(" {}#{}", it.worker.id, it.assignment));
                let controls: Vec<_> = run.controls.iter().map(|it| it.action.name()).collect();
                let controls = if controls.is_empty() {
                    String::new()
                } else {
                    format!(" [{}]", controls.join(", "))
                };
                format!("{}{}{controls}", run.status.name(), bound.unwrap_or_default())
            }
            Ok(None) => "(nothing)".into(),
            Err(refusal) => format!("! {refusal}"),
        };
        if !matches!(outcome, Ok(Some(_))) {
            assert_eq!(self.state, before, "a refused command changes nothing");
        }
        self.log.push(format!("{line:<24}=> {result}"));
        assert_eq!(replay(&self.state.id, &self.records).as_ref(), Some(&self.state));
    }
}

fn command(line: &str, run: &RunState) -> RunCommand {
    let words: Vec<&str> = line.split(' ').collect();
    let word = |n: usize| words.get(n).copied().unwrap_or_default();
    let action = |action| RunCommand::Control { action, requested_by: None, bulk: false };
    match words[0] {
        "assign" => RunCommand::Assign { worker: worker(word(1)) },
        "heartbeat" => RunCommand::Heartbeat { worker: worker(word(1)) },
        "dispatch" => RunCommand::Dispatch {
            by: reporter(word(1)),
            user: "u".into(),
            turn: word(2).into(),
            conversation: None,
        },
        "pause" => action(ControlAction::Pause),
        "resume" => action(ControlAction::Resume),
        "stop" => action(ControlAction::Stop),
        "human" => action(ControlAction::SetMode(ControlMode::HumanOverride)),
        "applied" => RunCommand::Report(RunReport {
            applied: run.progress.controls.iter().take(1).map(|it| it.id.clone()).collect(),
            ..report("applied", None, "")
        }),
        "expire" => RunCommand::Expire {
            heartbeat: Time::from_micros(0),
            grace: LEASE_GRACE,
            most_losses: 2,
        },
        kind => {
            let by = words[1..].iter().find(|word| word.starts_with('w')).copied();
            let turn = words[1..].iter().find(|word| word.starts_with('t')).copied();
            RunCommand::Report(report(kind, by, turn.unwrap_or_default()))
        }
    }
}

fn report(kind: &str, by: Option<&str>, turn: &str) -> RunReport {
    RunReport {
        kind: kind.into(),
        source: "stream".into(),
        payload: Map::from_iter([("n".to_owned(), json!(1))]),
        end: match kind {
            "done" => Some(RunEnd::Completed),
            "error" => Some(RunEnd::Failed),
            _ => None,
        },
        applied: Vec::new(),
        by: by.map(reporter),
        turn: Some(turn.to_owned()).filter(|turn| !turn.is_empty()),
        key: kind.strip_prefix("key-").map(String::from),
    }
}

/// Parses `w1`, or `w1#2` for a worker with its assignment.
fn reporter(text: &str) -> Reporter {
    let (worker, assignment) = text.split_once('#').unwrap_or((text, ""));
    Reporter { worker: worker.into(), assignment: assignment.parse().ok() }
}

fn worker(id: &str) -> Worker {
    let (session, agent, user) = (None, None, Some("u".into()));
    let (vm, status, metadata) = ("vm".into(), "ready".into(), Map::<String, Value>::new());
    Worker { id: id.into(), vm, user, session, agent, status, metadata }
}

#[track_caller]
fn check(story: &str, then: &Expect) {
    let mut run = Story::new();
    story.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| run.play(line));
    then.assert_eq(&run.log.join("\n"));
}

#[test]
fn a_run_is_assigned_dispatched_and_completed() {
    check(
        "assign w1
         assign w2
         dispatch w2 t1
         dispatch w1 t1
         dispatch w1 t1
         text
         done
         text
         done
         stop
         assign w1
         heartbeat w1
         dispatch w1 t2",
        &expect![[r#"
            assign w1               => queued w1#1
            assign w2               => ! the run is not waiting for a worker
            dispatch w2 t1          => ! the run has another worker
            dispatch w1 t1          => running w1#1
            dispatch w1 t1          => (nothing)
            text                    => running w1#1
            done                    => completed w1#1
            text                    => completed w1#1
            done                    => completed w1#1
            stop                    => ! run is already completed
            assign w1               => ! run is already completed
            heartbeat w1            => ! run is already completed
            dispatch w1 t2          => ! run is already completed"#]],
    );
}

#[test]
fn commands_wait_until_their_effect_is_reported() {
    check(
        "pause
         assign w1
         resume
         assign w1
         human
         applied
         applied
         pause
         stop
         applied
         text
         done",
        &expect![[r#"
            pause                   => paused [pause]
            assign w1               => ! the run is not waiting for a worker
            resume                  => awaiting_worker [pause, resume]
            assign w1               => queued w1#1 [resume]
            human                   => queued w1#1 [resume, set-control-mode]
            applied                 => running w1#1 [set-control-mode]
            applied                 => running w1#1
            pause                   => paused w1#1 [pause]
            stop                    => stopped w1#1 [pause, stop]
            applied                 => stopped w1#1 [stop]
            text                    => stopped w1#1 [stop]
            done                    => stopped w1#1"#]],
    );
}

#[test]
fn a_silent_worker_loses_the_run_and_its_late_reports_are_refused() {
    check(
        "assign w1
         dispatch w1 t1
         +59
         expire
         +1
         expire
         expire
         text
         text t1
         heartbeat w1
         dispatch w1 t1
         assign w2
         text w1
         text w1 t1
         text t1
         text w2#1
         text w2#2 t2
         +60
         expire
         text w2#2",
        &expect![[r#"
            assign w1               => queued w1#1
            dispatch w1 t1          => running w1#1
            expire                  => (nothing)
            expire                  => awaiting_worker
            expire                  => (nothing)
            text                    => ! the run has another worker
            text t1                 => ! the run has another worker
            heartbeat w1            => ! the run has another worker
            dispatch w1 t1          => ! the run has another worker
            assign w2               => queued w2#2
            text w1                 => ! the run has another worker
            text w1 t1              => ! the run has another worker
            text t1                 => ! the run has another worker
            text w2#1               => ! the run has another worker
            text w2#2 t2            => running w2#2
            expire                  => failed
            text w2#2               => ! the run has another worker"#]],
    );
}

#[test]
fn a_paused_run_that_loses_its_worker_stays_paused() {
    check(
        "assign w1
         dispatch w1 t1
         pause
         +60
         expire
         resume
         assign w1
         dispatch w1#1 t2
         dispatch w1#2 t2",
        &expect![[r#"
            assign w1               => queued w1#1
            dispatch w1 t1          => running w1#1
            pause                   => paused w1#1 [pause]
            expire                  => paused [pause]
            resume                  => awaiting_worker [pause, resume]
            assign w1               => queued w1#2 [resume]
            dispatch w1#1 t2        => ! the run has another worker
            dispatch w1#2 t2        => running w1#2 [resume]"#]],
    );
}

#[test]
fn a_report_that_is_repeated_is_stored_once() {
    check(
        "key-1
         key-1
         key-2
         key-1
         error",
        &expect![[r#"
            key-1                   => running
            key-1                   => (nothing)
            key-2                   => running
            key-1                   => running
            error                   => failed"#]],
    );
}

#[test]
fn a_worker_may_bind_itself_to_a_run_that_lost_none() {
    check(
        "heartbeat w1
         heartbeat w2
         heartbeat w1
         assign w2",
        &expect![[r#"
            heartbeat w1            => running w1#1
            heartbeat w2            => ! the run has another worker
            heartbeat w1            => running w1#1
            assign w2               => ! the run is not waiting for a worker"#]],
    );
}

#[test]
fn deeply_nested_metadata_of_clients_and_workers_can_be_read_back() {
    let deep: Value = (0..126).fold(json!("core"), |value, _| json!([value]));
    let map = Map::from_iter([("deep".to_owned(), deep)]);
    let mut story = Story::new();
    let brief = NewRun {
        workspace: "w".into(),
        agent: None,
        query: "do it".into(),
        requested_by: None,
        files: Vec::new(),
        metadata: map.clone(),
        conversation: None,
    };
    let report = RunReport {
        kind: "x".into(),
        source: "y".into(),
        payload: map,
        end: None,
        applied: Vec::new(),
        by: None,
        turn: None,
        key: None,
    };
    let stamp = Stamp::new(Time::from_micros(0), [1, 0]);
    let reported = handle(&mut story.state, RunCommand::Report(report), &stamp).unwrap().unwrap();
    for event in [begin(&story.state.id, brief), reported.event] {
        let read = decode_event(crate::codec::VERSION, &encode_event(&event)).unwrap();
        assert_eq!(read, event);
    }
}
