//! Requests about a session's context: its size and its compaction.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, TurnCounts};
use quintet_kernel::port::{self, Models, Receipt};
use quintet_kernel::prompt::count_prompt_tokens;
use quintet_kernel::{Cursor, Item, Refusal, SessionId, State};
use serde_json::{Value, json};

use super::detail;
use super::dispatch::{Reply, refused};
use super::serve::AppState;
use super::shape;
use crate::jsonrpc::{Error, INTERNAL_ERROR};

/// The result of a compaction: the summary, and how many turns models read before and after it.
type Outcome = Result<(String, TurnCounts), String>;

impl AppState {
    pub(super) async fn context(&self, session: &SessionId) -> Result<Reply, Error> {
        let shown = self.count_in(session, shape::context).await?;
        let mut result = shown.clone();
        result["context"] = shown;
        Ok(result.into())
    }

    pub(super) async fn snapshot(&self, session: &SessionId, whole: bool) -> Result<Reply, Error> {
        let show = if whole { detail::whole } else { detail::snapshot };
        Ok(self.count_in(session, show).await?.into())
    }

    pub(super) async fn room(&self, session: &SessionId, expected: u64) -> Result<Reply, Error> {
        Ok(self
            .count_in(session, move |state, models| shape::room(state, models, expected))
            .await?
            .into())
    }

    /// Summarizes old history, by the model or with this text, and waits for the end of it.
    pub(super) async fn compact(
        &self,
        session: &SessionId,
        summary: Option<String>,
    ) -> Result<Reply, Error> {
        let before = self.tokens(session).await?;
        let command = match summary {
            Some(summary) => Command::CompactWith { summary },
            None => Command::Compact,
        };
        let outcome = match self.services.sessions.submit(session, command).await {
            Ok(receipt) => self.summarized(&receipt).await?,
            Err(port::Error::Refused(refusal @ Refusal::NothingToCompact)) => {
                Err(refusal.to_string())
            }
            Err(error) => return Err(refused(error)),
        };
        let after = self.tokens(session).await?;
        let mut result = reduced(before, after);
        result["compacted"] = outcome.is_ok().into();
        result["success"] = outcome.is_ok().into();
        match outcome {
            Ok((summary, turns)) => {
                result["summary"] = summary.into();
                result["turnsBefore"] = turns.before.into();
                result["turnsAfter"] = turns.after.into();
            }
            Err(reason) => {
                result["summary"] = "".into();
                result["reason"] = reason.into();
            }
        }
        Ok(result.into())
    }

    /// Waits for the result of a compaction that was submitted.
    async fn summarized(&self, asked: &Receipt) -> Result<Outcome, Error> {
        if let Some(outcome) = asked.records.iter().find_map(|record| outcome(&record.event)) {
            return Ok(outcome);
        }
        let from = Cursor::after(asked.records.first().map_or(0, |record| record.seq));
        let follow = self.services.sessions.follow(&asked.session, from);
        let mut follow = follow.await.map_err(refused)?;
        while let Some(items) = follow.next().await.map_err(refused)? {
            let event = |item: &Item| match item {
                Item::Event(record) => outcome(&record.event),
                Item::Text { .. } | Item::Progress { .. } => None,
            };
            if let Some(outcome) = items.iter().find_map(event) {
                return Ok(outcome);
            }
        }
        Err(refused(port::Error::Closing))
    }

    /// Shows what a compaction would do now. The model writes the summary; nothing is stored.
    pub(super) async fn preview(&self, session: &SessionId) -> Result<Reply, Error> {
        let now = self.view(session).await?;
        let then = match self.services.inspection.preview_summary(session).await {
            Ok(Ok(state)) => Arc::new(state),
            Ok(Err(reason)) => return Err(Error::new(INTERNAL_ERROR, reason)),
            Err(port::Error::Refused(Refusal::NothingToCompact)) => Arc::clone(&now),
            Err(error) => return Err(refused(error)),
        };
        let preview = detail::preview(&now, &then);
        let before = self.counted(now, tokens).await?;
        let after = self.counted(then, tokens).await?;
        let mut result = reduced(before, after);
        for (name, value) in preview {
            result[name] = value;
        }
        Ok(result.into())
    }

    /// Hides all messages from models. The journal keeps them, and a fork from before has them.
    pub(super) async fn clear(&self, session: &SessionId) -> Result<Reply, Error> {
        let before = self.tokens(session).await?;
        let forget = Command::ImportMessages { messages: Vec::new(), instead: true };
        self.services.sessions.submit(session, forget).await.map_err(refused)?;
        let after = self.tokens(session).await?;
        Ok(json!({ "success": true, "tokensBefore": before, "tokensAfter": after }).into())
    }

    /// How many tokens a model would read now.
    async fn tokens(&self, session: &SessionId) -> Result<u64, Error> {
        self.counted(self.view(session).await?, tokens).await
    }

    async fn count_in(
        &self,
        session: &SessionId,
        show: impl FnOnce(&State, &dyn Models) -> Value + Send + 'static,
    ) -> Result<Value, Error> {
        self.counted(self.view(session).await?, show).await
    }

    /// Counts on a blocking thread: a tokenizer's table may have to be read first.
    async fn counted<T: Send + 'static>(
        &self,
        state: Arc<State>,
        weigh: impl FnOnce(&State, &dyn Models) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let models = Arc::clone(&self.services.models);
        let count_in = tokio::task::spawn_blocking(move || weigh(&state, &*models));
        count_in.await.map_err(|_| Error::new(INTERNAL_ERROR, "counting tokens failed"))
    }
}

fn tokens(state: &State, models: &dyn Models) -> u64 {
    count_prompt_tokens(state, models).total().tokens
}

fn outcome(event: &Event) -> Option<Outcome> {
    match event {
        Event::Compacted { summary, turns, .. } => Some(Ok((summary.clone(), *turns))),
        Event::CompactionFailed { reason } => Some(Err(reason.clone())),
        _ => None,
    }
}

fn reduced(before: u64, after: u64) -> Value {
    json!({
        "tokensBefore": before,
        "tokensAfter": after,
        "tokensSaved": before.saturating_sub(after),
        "compressionRatio": after as f64 / before.max(1) as f64,
    })
}
