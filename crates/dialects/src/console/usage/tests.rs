//! What is made of the events of a session.

use quintet_kernel::event::Record;
use quintet_kernel::model::{ModelRef, Price, Profile};
use quintet_kernel::port::ModelProfiles;
use quintet_kernel::{Time, codec};
use serde_json::{Value, json};

use super::calls::ModelCall;
use super::figures::{Compaction, SessionFigures};
use super::series::{Range, Series};

mod all_sessions;

const STARTED: &str = r#"{"step_started":{"turn":"t1","step":"p1","model":"fake/priced"}}"#;
const COMPLETED: &str = r#"{"model_completed":{"turn":"t1","step":"p1","message":"m2","finish":"stop","calls":[],"usage":{"input":100,"output":20,"cached":40}}}"#;

/// Knows the price of one model: a dollar for a million tokens read, two for those written.
#[derive(Debug)]
struct Prices;

impl ModelProfiles for Prices {
    fn profile(&self, _model: &ModelRef) -> Option<Profile> {
        None
    }

    fn price(&self, model: &ModelRef) -> Option<Price> {
        let price = Price { input: 1_000_000, output: 2_000_000, cached: Some(0) };
        (model.model == "priced").then_some(price)
    }
}

/// The figures of a session whose events are ten seconds apart, the first of them at ten.
fn figures(events: &[&str]) -> SessionFigures {
    let mut figures = SessionFigures::default();
    for (seq, event) in (1_u32..).zip(events) {
        let event = codec::decode(codec::VERSION, event.as_bytes()).expect(event);
        let at = Time::from_micros(10_000_000 * i64::from(seq));
        figures.take(&Record { seq: seq.into(), at, event }, &Prices);
    }
    figures
}

#[track_caller]
fn check(events: &[&str], expected: &[Value]) {
    let shown = |call: &ModelCall| {
        let all = call.encode();
        json!([
            all["model"],
            all["purpose"],
            all["usage"]["total"],
            all["cost"],
            all["took_ms"],
            all["retries"],
            all["failed"]
        ])
    };
    assert_eq!(figures(events).calls().iter().map(shown).collect::<Vec<_>>(), expected);
}

#[test]
fn a_call_has_its_tokens_its_cost_and_its_time() {
    let one = json!(["fake/priced", "answer", 120, 100, 10_000, 0, false]);
    check(&[STARTED, COMPLETED], std::slice::from_ref(&one));
    let other = STARTED.replace("priced", "other");
    let unknown = json!(["fake/other", "answer", 120, null, 10_000, 0, false]);
    check(&[STARTED, COMPLETED, &other, COMPLETED], &[one, unknown]);
}

#[test]
fn another_model_that_answers_is_the_one_that_is_paid() {
    let by = COMPLETED.replace("\"calls\"", "\"by\":\"fake/other\",\"calls\"");
    check(&[STARTED, &by], &[json!(["fake/other", "answer", 120, null, 10_000, 0, false])]);
}

#[test]
fn retries_count_and_the_time_of_a_restart_does_not() {
    let retry =
        r#"{"model_retrying":{"turn":"t1","step":"p1","attempt":2,"wait_ms":5,"reason":"429"}}"#;
    let resumed = r#"{"turn_resumed":{"turn":"t1","after_ms":5}}"#;
    let expected = json!(["fake/priced", "answer", 120, 100, 20_000, 1, false]);
    check(&[STARTED, retry, COMPLETED], &[expected]);
    let expected = json!(["fake/priced", "answer", 120, 100, null, 0, false]);
    check(&[STARTED, resumed, COMPLETED], &[expected]);
}

#[test]
fn an_answer_that_does_not_come_is_a_failed_call() {
    let failed = r#"{"turn_failed":{"turn":"t1","code":"interrupted","message":"no","usage":{"input":0,"output":0}}}"#;
    let expected = json!(["fake/priced", "answer", 0, 0, 10_000, 0, true]);
    check(&[STARTED, failed, failed], &[expected]);
}

#[test]
fn sums_are_those_of_the_calls_in_the_range() {
    let events = [STARTED, COMPLETED, STARTED, COMPLETED, STARTED, COMPLETED];
    // The calls end at 20, 40 and 60 seconds; the range is from 15 to 55.
    let range = Range::parse("since=15000000&step=20&steps=2").unwrap();
    let mut series = Series::new(range);
    series.add(&figures(&events), 0);
    let shown = series.encode();
    let tokens = |sum: &Value| sum["usage"]["total"].as_u64();
    assert_eq!(tokens(&shown["whole"]), Some(240));
    assert_eq!([tokens(&shown["steps"][0]), tokens(&shown["steps"][1])], [Some(120), Some(120)]);
    assert_eq!(shown["models"][0]["model"], "fake/priced");
    let whole = &shown["whole"];
    assert_eq!([&whole["cost"], &whole["median_ms"], &whole["p95_ms"]], [200, 10_000, 10_000]);
    assert_eq!(whole["tokens_per_second"], 2);
}

#[test]
fn a_step_without_calls_has_neither_cost_nor_time() {
    let range = Range::parse("since=1&step=1&steps=1").unwrap();
    let shown = Series::new(range).encode();
    let step = &shown["steps"][0];
    for name in ["cost", "median_ms", "p95_ms", "tokens_per_second"] {
        assert_eq!(step[name], Value::Null, "{name}");
    }
}

#[test]
fn figures_that_were_kept_are_those_that_were_read() {
    let compacted = r#"{"compacted":{"upto":"m1","summary":"","messages":4,"tokens_before":900,"tokens_after":90,"usage":{"input":10,"output":5}}}"#;
    let read = figures(&[STARTED, COMPLETED, compacted]);
    let kept = serde_json::to_value(&read).unwrap();
    let restored: SessionFigures = serde_json::from_value(kept).unwrap();
    let restored = restored.restored(&Prices);
    let shown = |of: &SessionFigures| of.calls().iter().map(ModelCall::encode).collect::<Vec<_>>();
    assert_eq!(shown(&restored), shown(&read));
    let compactions: Vec<Value> = restored.compactions(0).map(Compaction::encode).collect();
    let expected = json!({ "seq": 3, "at": 30_000_000, "messages": 4, "tokens_before": 900, "tokens_after": 90 });
    assert_eq!(compactions, [expected]);
    assert_eq!(restored.compactions(3).count(), 0);
}
