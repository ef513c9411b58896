//! Model calls summed up by steps of time and by models.

use std::collections::BTreeMap;

use quintet_kernel::Time;
use quintet_kernel::event::Seq;
use quintet_kernel::model::Usage;
use serde_json::{Value, json};

use super::calls::ModelCall;
use super::figures::SessionFigures;
use crate::console::encode;
use crate::transport::query::parameter;

/// The most steps of a range.
const STEPS_LIMIT: u64 = 400;
const MICROS_PER_SECOND: u64 = 1_000_000;

/// A period, divided into steps of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::console) struct Range {
    /// Microseconds since 1970.
    since: i64,
    /// The length of a step in microseconds.
    step: i64,
    steps: usize,
}

impl Range {
    /// Reads `since=MICROS&step=SECONDS&steps=N`. Fails with what is wrong.
    pub(in crate::console) fn parse(query: &str) -> Result<Self, String> {
        let number = |name: &str, most: u64| {
            let value = parameter(query, name).and_then(|text| text.parse::<u64>().ok());
            let value = value.filter(|value| (1..=most).contains(value));
            value.ok_or_else(|| format!("{name} must be a number from 1 to {most}"))
        };
        let most_seconds = i64::MAX.cast_unsigned() / MICROS_PER_SECOND / STEPS_LIMIT / 2;
        let since = number("since", i64::MAX.cast_unsigned() / 2)?;
        let step = number("step", most_seconds)? * MICROS_PER_SECOND;
        let steps = number("steps", STEPS_LIMIT)?;
        Ok(Self {
            since: since.cast_signed(),
            step: step.cast_signed(),
            steps: usize::try_from(steps).unwrap_or(1),
        })
    }

    /// When the range begins.
    pub(super) fn since(self) -> Time {
        Time::from_micros(self.since)
    }

    /// The step that a time falls into.
    fn place(self, at: Time) -> Option<usize> {
        let after = at.micros().checked_sub(self.since).filter(|after| *after >= 0)?;
        usize::try_from(after / self.step).ok().filter(|place| *place < self.steps)
    }
}

/// The sums of a range.
pub(super) struct Series {
    range: Range,
    steps: Vec<Sum>,
    models: BTreeMap<String, Sum>,
    whole: Sum,
}

/// Sums over some calls.
#[derive(Clone, Debug, Default)]
struct Sum {
    calls: u64,
    failed: u64,
    retries: u64,
    usage: Usage,
    cost: u64,
    /// Calls of models whose price is not known.
    unpriced: u64,
    took_ms: Vec<u64>,
    /// Tokens and milliseconds of the answers whose time is known.
    written: u64,
    writing_ms: u64,
}

impl Series {
    pub(super) fn new(range: Range) -> Self {
        let steps = vec![Sum::default(); range.steps];
        Self { range, steps, models: BTreeMap::new(), whole: Sum::default() }
    }

    /// Adds the calls of a session after an event; those that a fork shares with its parent come before it.
    pub(super) fn add(&mut self, figures: &SessionFigures, after: Seq) {
        for call in figures.calls().iter().filter(|call| call.seq > after) {
            let Some(place) = self.range.place(call.at) else { continue };
            self.steps[place].add(call);
            self.models.entry(call.model.to_string()).or_default().add(call);
            self.whole.add(call);
        }
    }

    pub(super) fn encode(self) -> Value {
        let steps: Vec<Value> = self.steps.into_iter().map(Sum::encode).collect();
        let model = |(name, sum): (String, Sum)| {
            let mut shown = sum.encode();
            shown["model"] = name.into();
            shown
        };
        let models: Vec<Value> = self.models.into_iter().map(model).collect();
        json!({ "steps": steps, "models": models, "whole": self.whole.encode() })
    }
}

impl Sum {
    fn add(&mut self, call: &ModelCall) {
        self.calls += 1;
        self.failed += u64::from(call.failed);
        self.retries += u64::from(call.retries);
        self.usage = self.usage.plus(call.usage);
        match call.cost {
            Some(cost) => self.cost = self.cost.saturating_add(cost),
            None => self.unpriced += 1,
        }
        if let Some(took) = call.took_ms.filter(|_| !call.failed) {
            self.took_ms.push(took);
            self.written += call.usage.output;
            self.writing_ms += took;
        }
    }

    fn encode(mut self) -> Value {
        self.took_ms.sort_unstable();
        let at = |percent: usize| {
            let last = self.took_ms.len().checked_sub(1)?;
            self.took_ms.get(last * percent / 100).copied()
        };
        let per_second = (self.written * 1000).checked_div(self.writing_ms);
        json!({
            "calls": self.calls, "failed": self.failed, "retries": self.retries,
            "usage": encode::usage(self.usage),
            "cost": (self.calls > self.unpriced).then_some(self.cost), "unpriced": self.unpriced,
            "median_ms": at(50), "p95_ms": at(95), "tokens_per_second": per_second,
        })
    }
}
