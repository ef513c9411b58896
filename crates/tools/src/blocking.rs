//! Work that blocks a thread, and stops when the call is cancelled or dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quintet_kernel::port::{ToolContext, ToolOutput};
use quintet_kernel::tool::{Ending, Outcome};
use tokio::task::{JoinError, spawn_blocking};

/// Tells work whether to go on.
#[derive(Clone, Debug, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    /// Whether the work should stop; its result is then of no interest.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lowers the flag when the call is dropped.
struct Guard(CancelFlag);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Looks at something for as long as the call is wanted.
pub(crate) async fn run_cancellable(
    context: &ToolContext,
    work: impl FnOnce(&CancelFlag) -> Result<ToolOutput, String> + Send + 'static,
) -> ToolOutput {
    match until_cancelled(context, work).await {
        Some(done) => output_of(done.map_err(|error| error.to_string()).and_then(|done| done)),
        None => Outcome::ended(Ending::Cancelled, "cancelled").into(),
    }
}

/// Works until it is done or, with nothing to show for it, the call is cancelled.
pub(crate) async fn until_cancelled<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&CancelFlag) -> T + Send + 'static,
) -> Option<Result<T, JoinError>> {
    let flag = CancelFlag::default();
    let _guard = Guard(flag.clone());
    let seen = flag.clone();
    let mut working = spawn_blocking(move || work(&seen));
    tokio::select! {
        done = &mut working => Some(done),
        () = context.cancel.cancelled() => {
            flag.cancel();
            let _unwanted = working.await;
            None
        }
    }
}

/// Runs read-only work on a blocking thread; the work is told to stop when the caller is gone.
pub(crate) async fn run_while_awaited<T: Send + 'static>(
    work: impl FnOnce(&CancelFlag) -> T + Send + 'static,
) -> Option<T> {
    let flag = CancelFlag::default();
    let _guard = Guard(flag.clone());
    spawn_blocking(move || work(&flag)).await.ok()
}

/// Runs work that changes something on a blocking thread; once started, it runs to its end.
pub(crate) async fn run_to_end<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(format!("the work broke off: {error}")))
}

/// What a call gives back.
pub(crate) fn output_of(done: Result<ToolOutput, String>) -> ToolOutput {
    done.unwrap_or_else(|error| Outcome::failure(error).into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::walk::{Next, Walk};

    #[test]
    fn a_walk_stops_once_the_flag_is_down() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR"));
        let walk = Walk { workspace, within: None, skipped: &[], depth: None };
        let (flag, mut seen) = (CancelFlag::default(), 0);
        let walked = walk.each(&flag, |_| {
            seen += 1;
            drop(Guard(flag.clone()));
            Ok(Next::Continue)
        });
        assert_eq!((walked, seen), (Ok(()), 1));
    }
}
