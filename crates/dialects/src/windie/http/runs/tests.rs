//! Golden transcripts of runs: what is asked and what is answered, one story a file.
//!
//! `>` a request and `=` what it asks for, or how it is refused; `!` an event of a run's journal and `<`
//! how clients see it. `? run` shows the run after all events so far, `? assigned` what its worker is
//! given, `? commands` what its worker is told to do. `UPDATE_GOLDEN=1` rewrites `=` and `<`.

use std::fmt::Write as _;

use quintet_kernel::codec;
use quintet_kernel::id::{GeneratedId as _, RunId};
use quintet_kernel::port::RunEntry;
use quintet_kernel::run::{RunEvent, RunRecord, decode_event, replay};
use quintet_kernel::{Time, port};
use serde_json::Value;

use super::*;

#[test]
fn transcripts() {
    crate::golden::check("src/windie/http/runs/golden", |script| Story::default().tell(script));
}

#[derive(Default)]
struct Story {
    records: Vec<RunRecord>,
    out: String,
}

impl Story {
    fn tell(mut self, script: &str) -> String {
        for line in script.lines() {
            if line.starts_with("= ") || line.starts_with("< ") {
                continue;
            }
            writeln!(self.out, "{line}").unwrap();
            match line.split_at_checked(2) {
                Some(("> ", request)) => self.request(request),
                Some(("! ", event)) => self.happens(event),
                Some(("? ", what)) => self.show(what),
                _ => {}
            }
        }
        self.out
    }

    fn request(&mut self, request: &str) {
        let (what, body) = request.split_once(' ').unwrap();
        let asked = Body::<0>::parse(body.as_bytes()).and_then(|body| match what {
            "create" => body.read(decode::create).map(|new| format!("{new:?}")),
            "control" => body.read(decode::control).map(|command| format!("{command:?}")),
            "heartbeat" => body.read(decode::heartbeat).map(|command| format!("{command:?}")),
            "dispatched" => body.read(decode::dispatched).map(|command| format!("{command:?}")),
            "event" => body.read(decode::report).map(|report| format!("{report:?}")),
            "poll" => body.read(decode::poll).map(|(space, worker)| format!("{space} {worker:?}")),
            "stop-all" => {
                body.read(decode::stop_all).map(|(space, by)| format!("{space:?} {by:?}"))
            }
            other => panic!("{other}"),
        });
        let asked = asked.unwrap_or_else(|wrong| format!("422 {}", wrong.details()));
        writeln!(self.out, "= {asked}").unwrap();
    }

    fn happens(&mut self, line: &str) {
        let event: RunEvent = decode_event(codec::VERSION, line.as_bytes()).expect(line);
        let seq = self.records.len() as u64 + 1;
        let record = RunRecord { seq, at: at(seq), event };
        self.records.push(record.clone());
        self.write(&encode::event(&id(), record));
    }

    fn show(&mut self, what: &str) {
        let run = replay(&id(), &self.records).expect("a story begins with a run");
        match what {
            "run" => {
                let entry: port::RunEntry = RunEntry { run, heartbeat: None };
                self.write(&encode::view(&entry));
            }
            "assigned" => self.write(&encode::assigned(&run)),
            "commands" => {
                for control in &run.progress.controls {
                    self.write(&encode::command(&run.id, control));
                }
            }
            other => panic!("{other}"),
        }
    }

    fn write(&mut self, value: &Value) {
        writeln!(self.out, "< {value}").unwrap();
    }
}

fn id() -> RunId {
    RunId::named("4f6c0f0e-0000-4000-8000-000000000001".into())
}

fn at(seconds: u64) -> Time {
    Time::from_micros(1_735_689_600_000_000 + seconds as i64 * 1_000_000)
}
