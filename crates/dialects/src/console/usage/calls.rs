//! The model calls of one session, from its events.

use std::sync::Arc;

use quintet_kernel::Time;
use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::model::{ModelRef, Usage};
use quintet_kernel::port::ModelProfiles;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::console::encode;

/// One call of a model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ModelCall {
    /// The event that ended it.
    pub(super) seq: Seq,
    /// When it ended.
    pub(super) at: Time,
    pub(super) model: Arc<ModelRef>,
    pub(super) purpose: Purpose,
    pub(super) usage: Usage,
    /// In millionths of a US dollar, if the model's price is known. Not kept: prices change.
    #[serde(skip)]
    pub(super) cost: Option<u64>,
    /// From the request to the end of the answer with all retries, unless the daemon restarted meanwhile.
    pub(super) took_ms: Option<u64>,
    pub(super) retries: u32,
    /// True if no answer came.
    pub(super) failed: bool,
}

/// What a model was called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Purpose {
    Answer,
    /// The conversation was summarized.
    Summary,
    /// A change was reviewed.
    Review,
}

impl ModelCall {
    pub(super) fn encode(&self) -> Value {
        json!({
            "seq": self.seq, "at": self.at.micros(), "model": self.model.to_string(),
            "purpose": match self.purpose {
                Purpose::Answer => "answer",
                Purpose::Summary => "summary",
                Purpose::Review => "review",
            },
            "usage": encode::usage(self.usage), "cost": self.cost, "took_ms": self.took_ms,
            "retries": self.retries, "failed": self.failed,
        })
    }
}

/// Collects the calls of a session while its events are read in order.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CallReader {
    calls: Vec<ModelCall>,
    /// The model of the newest step.
    model: Option<Arc<ModelRef>>,
    #[serde(skip)]
    open: Option<OpenCall>,
}

#[derive(Debug)]
struct OpenCall {
    /// Not known after a restart.
    began: Option<Time>,
    retries: u32,
}

impl CallReader {
    pub(super) fn calls(&self) -> &[ModelCall] {
        &self.calls
    }

    /// Completes stored calls with what is not stored: their cost, and shared model names.
    pub(super) fn restore(&mut self, models: &(impl ModelProfiles + ?Sized)) {
        let mut names: Vec<Arc<ModelRef>> = Vec::new();
        for call in &mut self.calls {
            match names.iter().find(|name| **name == call.model) {
                Some(name) => call.model = Arc::clone(name),
                None => names.push(Arc::clone(&call.model)),
            }
            call.cost = models.price(&call.model).map(|price| price.cost(call.usage));
        }
    }

    /// Reads the next event.
    pub(super) fn take(&mut self, record: &Record, models: &(impl ModelProfiles + ?Sized)) {
        match &record.event {
            Event::StepStarted { model, .. } => {
                if self.model.as_deref() != Some(model) {
                    self.model = Some(Arc::new(model.clone()));
                }
                self.open = Some(OpenCall { began: Some(record.at), retries: 0 });
            }
            Event::ModelRetrying { .. } => {
                if let Some(open) = &mut self.open {
                    open.retries += 1;
                }
            }
            Event::TurnResumed { .. } => {
                if let Some(open) = &mut self.open {
                    open.began = None;
                }
            }
            Event::ModelCompleted { usage, by, .. } => {
                self.end(record, *usage, by.as_ref(), models);
            }
            Event::StepInterrupted { .. } | Event::TurnFailed { .. } if self.open.is_some() => {
                self.end(record, Usage::default(), None, models);
                if let Some(call) = self.calls.last_mut() {
                    call.failed = true;
                }
            }
            // The length of an answer that was stopped is not known.
            Event::TurnCancelled { .. } => self.open = None,
            Event::Compacted { usage, .. } => self.add(record, Purpose::Summary, *usage, models),
            Event::Reviewed { usage, .. } => self.add(record, Purpose::Review, *usage, models),
            _ => {}
        }
    }

    /// Ends the call that is open; `by` is the model that answered in its place.
    fn end(
        &mut self,
        record: &Record,
        usage: Usage,
        by: Option<&ModelRef>,
        models: &(impl ModelProfiles + ?Sized),
    ) {
        let model = by.map(|by| Arc::new(by.clone())).or_else(|| self.model.clone());
        let (Some(open), Some(model)) = (self.open.take(), model) else { return };
        let took = open.began.map(|began| record.at.micros().saturating_sub(began.micros()));
        self.calls.push(ModelCall {
            seq: record.seq,
            at: record.at,
            cost: models.price(&model).map(|price| price.cost(usage)),
            model,
            purpose: Purpose::Answer,
            usage,
            took_ms: took.map(|micros| u64::try_from(micros / 1000).unwrap_or_default()),
            retries: open.retries,
            failed: false,
        });
    }

    /// Adds a call that is not a step of a turn. One without tokens was never made.
    fn add(
        &mut self,
        record: &Record,
        purpose: Purpose,
        usage: Usage,
        models: &(impl ModelProfiles + ?Sized),
    ) {
        let Some(model) = self.model.clone().filter(|_| usage.total() > 0) else { return };
        self.calls.push(ModelCall {
            seq: record.seq,
            at: record.at,
            cost: models.price(&model).map(|price| price.cost(usage)),
            model,
            purpose,
            usage,
            took_ms: None,
            retries: 0,
            failed: false,
        });
    }
}
