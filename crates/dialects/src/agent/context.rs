//! Requests about a session's context: its size and its compaction.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, TurnCounts};
use quintet_kernel::port::{self, Models, Receipt};
use quintet_kernel::prompt::count_prompt_tokens;
use quintet_kernel::{Cursor, Item, Refusal, SessionId, State};
use serde_json::{Value, json};

use super::context_detail;
use super::dispatch::{Reply, rpc_error};
use super::serve::AppState;
use super::shape;
use crate::jsonrpc::{Error, INTERNAL_ERROR};

/// The result of a compaction: the summary, and how many turns the model's prompt had before and after it.
type Outcome = Result<(String, TurnCounts), String>;

impl AppState {
    pub(super) async fn context(&self, session: &SessionId) -> Result<Reply, Error> {
        let shown = self.count_in_session(session, shape::context).await?;
        let mut result = shown.clone();
        result["context"] = shown;
        Ok(result.into())
    }

    pub(super) async fn snapshot(&self, session: &SessionId, whole: bool) -> Result<Reply, Error> {
        let show = if whole { context_detail::whole } else { context_detail::snapshot };
        Ok(self.count_in_session(session, show).await?.into())
    }

    pub(super) async fn space(&self, session: &SessionId, expected: u64) -> Result<Reply, Error> {
        Ok(self
            .count_in_session(session, move |state, models| shape::space(state, models, expected))
            .await?
            .into())
    }

    /// Summarizes old history, by the model or with this text, and waits for the result.
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
            Ok(receipt) => self.compaction_result(&receipt).await?,
            Err(port::Error::Refused(refusal @ Refusal::NothingToCompact)) => {
                Err(refusal.to_string())
            }
            Err(error) => return Err(rpc_error(error)),
        };
        let after = self.tokens(session).await?;
        let mut result = token_counts(before, after);
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
    async fn compaction_result(&self, receipt: &Receipt) -> Result<Outcome, Error> {
        if let Some(outcome) = receipt.records.iter().find_map(|record| outcome(&record.event)) {
            return Ok(outcome);
        }
        let from = Cursor::after(receipt.records.first().map_or(0, |record| record.seq));
        let follow = self.services.sessions.follow(&receipt.session, from);
        let mut follow = follow.await.map_err(rpc_error)?;
        while let Some(items) = follow.next().await.map_err(rpc_error)? {
            let event = |item: &Item| match item {
                Item::Event(record) => outcome(&record.event),
                Item::Text { .. } | Item::Progress { .. } => None,
            };
            if let Some(outcome) = items.iter().find_map(event) {
                return Ok(outcome);
            }
        }
        Err(rpc_error(port::Error::Closing))
    }

    /// Shows what a compaction would do now. The model writes the summary; nothing is stored.
    pub(super) async fn preview(&self, session: &SessionId) -> Result<Reply, Error> {
        let now = self.view(session).await?;
        let compacted = match self.services.inspection.preview_summary(session).await {
            Ok(Ok(state)) => Arc::new(state),
            Ok(Err(reason)) => return Err(Error::new(INTERNAL_ERROR, reason)),
            Err(port::Error::Refused(Refusal::NothingToCompact)) => Arc::clone(&now),
            Err(error) => return Err(rpc_error(error)),
        };
        let preview = context_detail::preview(&now, &compacted);
        let before = self.count_tokens(now, tokens).await?;
        let after = self.count_tokens(compacted, tokens).await?;
        let mut result = token_counts(before, after);
        for (name, value) in preview {
            result[name] = value;
        }
        Ok(result.into())
    }

    /// Hides all messages from models. The journal keeps them, and a fork from before has them.
    pub(super) async fn clear(&self, session: &SessionId) -> Result<Reply, Error> {
        let before = self.tokens(session).await?;
        let clear = Command::ImportMessages { messages: Vec::new(), instead: true };
        self.services.sessions.submit(session, clear).await.map_err(rpc_error)?;
        let after = self.tokens(session).await?;
        Ok(json!({ "success": true, "tokensBefore": before, "tokensAfter": after }).into())
    }

    /// The number of tokens that a model would read now.
    async fn tokens(&self, session: &SessionId) -> Result<u64, Error> {
        self.count_tokens(self.view(session).await?, tokens).await
    }

    async fn count_in_session(
        &self,
        session: &SessionId,
        show: impl FnOnce(&State, &dyn Models) -> Value + Send + 'static,
    ) -> Result<Value, Error> {
        self.count_tokens(self.view(session).await?, show).await
    }

    /// Counts on a blocking thread: a tokenizer's table may have to be read first.
    async fn count_tokens<T: Send + 'static>(
        &self,
        state: Arc<State>,
        count: impl FnOnce(&State, &dyn Models) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let models = Arc::clone(&self.services.models);
        let counting = tokio::task::spawn_blocking(move || count(&state, &*models));
        counting.await.map_err(|_| Error::new(INTERNAL_ERROR, "counting tokens failed"))
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

fn token_counts(before: u64, after: u64) -> Value {
    json!({
        "tokensBefore": before,
        "tokensAfter": after,
        "tokensSaved": before.saturating_sub(after),
        "compressionRatio": after as f64 / before.max(1) as f64,
    })
}
