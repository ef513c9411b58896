//! Tasks that run as long as the daemon does, by name.

use std::collections::HashMap;

use tokio::task::{Id, JoinError, JoinSet};

/// Tasks that run as long as the daemon does. Dropping this ends them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    set: JoinSet<()>,
    names: HashMap<Id, String>,
}

impl Tasks {
    pub(super) fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name.into());
    }

    /// Waits until one of the tasks ends unexpectedly, and returns an error that names it. Waits
    /// forever if there are no tasks.
    pub(super) async fn failed(&mut self) -> anyhow::Error {
        match self.set.join_next_with_id().await {
            Some(Ok((id, ()))) => anyhow::anyhow!("{} ended unexpectedly", self.name(id)),
            Some(Err(error)) => self.panicked(&error),
            None => std::future::pending().await,
        }
    }

    /// Waits until all of the tasks have ended.
    pub(super) async fn ended(&mut self) {
        while let Some(ended) = self.set.join_next_with_id().await {
            if let Err(error) = ended {
                tracing::error!("{:#}", self.panicked(&error));
            }
        }
    }

    fn panicked(&self, error: &JoinError) -> anyhow::Error {
        anyhow::anyhow!("{} failed: {error}", self.name(error.id()))
    }

    fn name(&self, id: Id) -> &str {
        self.names.get(&id).map_or("a task", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_or_panics_is_named() {
        let mut tasks = Tasks::default();
        tasks.spawn("the first listener", std::future::pending());
        tasks.spawn("the second listener", async {});
        assert_eq!(tasks.failed().await.to_string(), "the second listener ended unexpectedly");
        tasks.spawn("the third listener", async { panic!("no more sockets") });
        let failed = tasks.failed().await.to_string();
        assert!(
            failed.starts_with("the third listener failed: ") && failed.contains("no more sockets")
        );
    }
}
