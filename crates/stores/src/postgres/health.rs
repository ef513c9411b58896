//! Whether the database accepts writes: known from the last commit, or probed.

use std::sync::Mutex;
use std::time::Duration;

use quintet_kernel::port::{self, BoxFuture, StorageError};
use tokio::time::{Instant, timeout};

use super::Store;
use super::writer::Group;
use crate::lock;

/// How long a successful result is valid; a failed one is valid for `BAD_LASTS`.
const GOOD_LASTS: Duration = Duration::from_secs(3);
const BAD_LASTS: Duration = Duration::from_secs(1);
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

type Beat = Result<(), StorageError>;

/// The result of the last commit.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<Option<(Instant, Beat)>>);

impl Health {
    pub(super) fn note(&self, beat: Beat) {
        *lock(&self.0) = Some((Instant::now(), beat));
    }

    fn known(&self) -> Option<Beat> {
        let lasts = |beat: &Beat| if beat.is_ok() { GOOD_LASTS } else { BAD_LASTS };
        let last = lock(&self.0).clone();
        last.filter(|(at, beat)| at.elapsed() < lasts(beat)).map(|(_, beat)| beat)
    }
}

impl port::StorageHealth for Store {
    fn check(&self) -> BoxFuture<'_, Beat> {
        Box::pin(async {
            if let Some(known) = self.health.known() {
                return known;
            }
            let touched = self.queue.change(async |group: &mut Group| {
                let touch = "UPDATE quintet_meta SET value = value WHERE key = 'schema_version'";
                group.db().execute(touch, &[]).await.map(drop)
            });
            let beat = timeout(WRITE_TIMEOUT, touched).await.unwrap_or_else(|_| {
                Err(StorageError::Unavailable("the database does not answer".into()))
            });
            self.health.note(beat.clone());
            beat
        })
    }
}
