//! Returns unused memory to the system when the daemon is idle.

use std::convert::Infallible;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Time after which the start is complete.
const START_LIMIT: Duration = Duration::from_secs(1);
/// How often CPU use is checked.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum CPU time of an idle daemon per interval.
const REST_LIMIT: Duration = Duration::from_millis(100);

/// Returns memory after the start and after work, forever.
pub(super) async fn release_when_idle() -> Infallible {
    sleep(START_LIMIT).await;
    release().await;
    let (mut seen, mut worked) = (processor_time(), false);
    loop {
        sleep(INTERVAL).await;
        let now = processor_time();
        let rests = now.saturating_sub(seen) <= REST_LIMIT;
        if rests && worked {
            release().await;
        }
        (seen, worked) = (now, !rests);
    }
}

async fn release() {
    let release = || {
        quintet_allocator::release_free_memory();
        quintet_allocator::release_program_pages();
    };
    // Allocations wait meanwhile, so this runs on its own thread.
    let _done = spawn_blocking(release).await;
}

/// The CPU time of this process.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
