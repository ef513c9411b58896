//! Returns memory that only work needed, once there is little work.

use std::convert::Infallible;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// How long after its start the daemon has done what only the start needs.
const START_LIMIT: Duration = Duration::from_secs(1);
/// How often to check whether work has ended.
const INTERVAL: Duration = Duration::from_secs(10);
/// What a daemon at rest needs of a processor in that time, at most.
const REST_LIMIT: Duration = Duration::from_millis(100);

/// Returns memory after the start and after work, for ever.
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
    // Allocations wait meanwhile, so this runs on a thread of its own.
    let _done = spawn_blocking(release).await;
}

/// The time that processors worked for this daemon.
fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
