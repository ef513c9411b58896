//! Relays the events of a conversation to the timeline of its run, in order and durably.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::gate::Gate;
use crate::runs::api::{Api, ApiError};

/// Capacity of the queue; a conversation that is faster than the control plane waits.
const QUEUE_CAPACITY: usize = 256;
/// Maximum length of the text in one event, in bytes.
const TEXT_LIMIT: usize = 16 * 1024;
/// Delay before a request is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(200);
const RETRY_DELAY_LIMIT: Duration = Duration::from_secs(5);

/// An event to relay.
#[derive(Debug)]
struct Event {
    kind: String,
    source: &'static str,
    payload: Value,
    durable: oneshot::Sender<()>,
}

/// The queue of events that are relayed into the timeline of a run.
#[derive(Clone, Debug)]
pub(super) struct Relay {
    queue: mpsc::Sender<Event>,
    /// Cancelled when the control plane accepts nothing more: the run ended or was reassigned.
    gone: CancellationToken,
}

/// The run that events are relayed to.
pub(super) struct Target {
    pub(super) api: Api,
    pub(super) run: String,
    pub(super) worker: String,
    pub(super) assignment: u64,
    pub(super) gate: Arc<Gate>,
}

/// Sends the events that a [`Relay`] queues.
pub(super) struct RelayTask {
    target: Target,
    queue: mpsc::Receiver<Event>,
    gone: CancellationToken,
}

impl Relay {
    pub(super) fn new(target: Target) -> (Self, RelayTask) {
        let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
        let gone = CancellationToken::new();
        let task = RelayTask { target, queue, gone: gone.clone() };
        (Self { queue: sender, gone }, task)
    }

    /// Queues a frame of the conversation; the receiver resolves when it is durable, or fails if it
    /// never will be.
    pub(super) async fn frame(&self, frame: &Value) -> oneshot::Receiver<()> {
        let mut payload = json!({ "payload": frame["payload"] });
        for name in ["conversation_ref", "turn_ref", "session_id", "event_id", "sequence"] {
            if let Some(value) = frame.get(name) {
                payload[name] = value.clone();
            }
        }
        let kind = frame["type"].as_str().unwrap_or_default().to_owned();
        self.put(kind, "worker-stream", payload).await
    }

    /// Queues an event of the worker itself.
    pub(super) async fn note(&self, kind: &str, payload: Value) -> oneshot::Receiver<()> {
        self.put(kind.to_owned(), "worker", payload).await
    }

    async fn put(
        &self,
        kind: String,
        source: &'static str,
        payload: Value,
    ) -> oneshot::Receiver<()> {
        let (durable, done) = oneshot::channel();
        // If the task has ended, the other end of `done` is dropped, and waiting for it fails.
        let _ = self.queue.send(Event { kind, source, payload, durable }).await;
        done
    }

    /// Records that the control plane accepts nothing more.
    pub(super) fn give_up(&self) {
        self.gone.cancel();
    }

    /// Resolves when the control plane accepts nothing more.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

impl RelayTask {
    /// Relays until the queue is closed or the control plane accepts nothing more.
    pub(super) async fn run(mut self) {
        let mut next = None;
        loop {
            let event = match next.take() {
                Some(event) => event,
                None => match self.queue.recv().await {
                    Some(event) => event,
                    None => return,
                },
            };
            let (event, waiting, left) = self.merge(event);
            next = left;
            if is_end(&event.kind) {
                // The end of a paused run is held until the run is resumed.
                self.target.gate.unpaused().await;
            }
            if !self.send(&event).await {
                self.gone.cancel();
                return;
            }
            for durable in waiting.into_iter().chain([event.durable]) {
                // The receiver may have been dropped.
                let _ = durable.send(());
            }
        }
    }

    /// Merges queued text; returns the senders to notify, and the event that could not be merged.
    fn merge(&mut self, mut event: Event) -> (Event, Vec<oneshot::Sender<()>>, Option<Event>) {
        let mut waiting = Vec::new();
        while is_text(&event.kind) {
            let Ok(next) = self.queue.try_recv() else { break };
            let text = event.payload["payload"]["text"].as_str().unwrap_or_default();
            let more = next.payload["payload"]["text"].as_str();
            let fits = next.kind == event.kind && text.len() < TEXT_LIMIT;
            let Some(more) = more.filter(|_| fits) else { return (event, waiting, Some(next)) };
            let text = format!("{text}{more}");
            let mut merged = next;
            merged.payload["payload"]["text"] = text.into();
            waiting.push(std::mem::replace(&mut event, merged).durable);
        }
        (event, waiting, None)
    }

    /// Sends an event; true once it is durable, false if the run ended or was reassigned.
    async fn send(&self, event: &Event) -> bool {
        let (run, mut delay) = (&self.target.run, RETRY_DELAY);
        loop {
            match self.report(event, event.payload.clone()).await {
                Ok(_) => return true,
                Err(error) if error.is_run_lost() => {
                    tracing::warn!(run, %error, "the run was reassigned to another worker");
                    return false;
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(run, %error, "could not relay an event; retrying");
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(RETRY_DELAY_LIMIT);
                }
                Err(error) => {
                    tracing::error!(run, kind = event.kind, %error, "the control plane refused an event");
                    // The end must be reported even without its payload.
                    return !is_end(&event.kind) || self.report(event, json!({})).await.is_ok();
                }
            }
        }
    }

    async fn report(&self, event: &Event, payload: Value) -> Result<Value, ApiError> {
        let Target { api, run, worker, assignment, .. } = &self.target;
        let body = json!({
            "event_type": event.kind, "source": event.source, "payload": payload,
            "worker_id": worker, "assignment": assignment,
        });
        api.report(run, body).await
    }
}

/// True if an event of this kind ends a run.
pub(super) fn is_end(kind: &str) -> bool {
    matches!(kind, "streaming-complete" | "error")
}

fn is_text(kind: &str) -> bool {
    matches!(kind, "streaming-response" | "llm-thought")
}
