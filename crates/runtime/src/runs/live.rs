//! Runs in use: a lock for the commands of each, and the cached state of small ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use quintet_kernel::id::RunId;
use quintet_kernel::port::RunEntry;
use tokio::sync::Mutex as AsyncMutex;

use super::lock;

/// Maximum number of cached runs.
const LIVE_LIMIT: usize = 256;
/// Maximum size of a run's request for its state to be cached, in bytes.
const LIVE_BYTES_LIMIT: usize = 64 * 1024;

/// The lock for the commands of a run, with its state if that is cached.
pub(super) type Slot = Arc<AsyncMutex<Option<RunEntry>>>;

/// The runs in use.
#[derive(Debug, Default)]
pub(super) struct LiveRuns {
    slots: Mutex<HashMap<RunId, Slot>>,
}

impl LiveRuns {
    /// The slot of a run.
    pub(super) fn slot(&self, run: &RunId) -> Slot {
        Arc::clone(lock(&self.slots).entry(run.clone()).or_default())
    }

    /// Returns a slot. An unused slot is dropped if it is empty or there are too many.
    pub(super) fn release(&self, run: &RunId, slot: Slot) {
        let mut slots = lock(&self.slots);
        drop(slot);
        // Slots are only cloned under this lock, so one with a single owner is free.
        let idle = |slot: &mut Slot| Arc::get_mut(slot).map(|slot| slot.get_mut().is_none());
        if slots.get_mut(run).and_then(idle) == Some(true) {
            slots.remove(run);
        }
        if slots.len() > LIVE_LIMIT {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
    }
}

/// Caches a run's state, unless the run has ended or is large.
pub(super) fn keep(cached: &mut Option<RunEntry>, entry: RunEntry) {
    let brief = &entry.run.brief;
    let metadata = |(name, value): (&String, &serde_json::Value)| {
        name.len() + value.as_str().map_or(64, str::len)
    };
    // Nested metadata are counted roughly; their size has a limit of its own.
    let bytes = brief.query.len() + brief.metadata.iter().map(metadata).sum::<usize>();
    let small = bytes <= LIVE_BYTES_LIMIT && brief.files.len() <= LIVE_LIMIT;
    *cached = (small && entry.run.progress.status.is_active()).then_some(entry);
}

#[cfg(test)]
mod tests {
    use quintet_kernel::Time;
    use quintet_kernel::id::GeneratedId as _;
    use quintet_kernel::run::{NewRun, RunRecord, RunState, begin};
    use serde_json::Map;

    use super::*;

    fn entry(name: &str, query: String) -> RunEntry {
        let id = RunId::named(name.into());
        let new = NewRun {
            workspace: "w".into(),
            agent: None,
            query,
            requested_by: None,
            files: Vec::new(),
            metadata: Map::new(),
            conversation: None,
        };
        let first = RunRecord { seq: 1, at: Time::from_micros(0), event: begin(&id, new) };
        RunEntry { run: RunState::begun(id, &first).expect("a run"), heartbeat: None }
    }

    /// Uses a run; returns the number of runs in memory afterwards.
    async fn work(live: &LiveRuns, entry: RunEntry) -> usize {
        let id = entry.run.id.clone();
        let slot = live.slot(&id);
        keep(&mut *slot.lock().await, entry);
        live.release(&id, slot);
        lock(&live.slots).len()
    }

    #[tokio::test]
    async fn only_few_and_small_runs_are_cached() {
        let live = LiveRuns::default();
        assert_eq!(work(&live, entry("large", "x".repeat(LIVE_BYTES_LIMIT + 1))).await, 0);
        assert_eq!(work(&live, entry("small", "x".into())).await, 1);
        for n in 0..1000 {
            assert!(work(&live, entry(&format!("r{n}"), "x".into())).await <= LIVE_LIMIT);
        }
        let used = live.slot(&RunId::named("used".into()));
        for n in 0..1000 {
            work(&live, entry(&format!("s{n}"), "x".into())).await;
        }
        assert!(Arc::ptr_eq(&used, &live.slot(&RunId::named("used".into()))), "a run in use stays");
    }
}
