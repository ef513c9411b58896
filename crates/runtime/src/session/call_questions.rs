//! Questions of a running call: submitted to its session and awaited until they are closed.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::Event;
use quintet_kernel::port::{BoxFuture, CancelSignal, Error, Sessions as _, UserQuestions};
use quintet_kernel::question::{Question, QuestionAnswer};
use quintet_kernel::{CallId, Cursor, Item, QuestionId, Seq, SessionId};

use crate::runtime::Runtime;

/// Asks on behalf of a call.
pub(super) struct CallQuestions {
    pub(super) runtime: Runtime,
    pub(super) session: SessionId,
    pub(super) call: CallId,
}

impl UserQuestions for CallQuestions {
    fn ask(
        &self,
        question: Question,
        withdrawn: Arc<dyn CancelSignal>,
    ) -> BoxFuture<'_, QuestionAnswer> {
        Box::pin(async move {
            let answer = self.put(question, &*withdrawn).await;
            answer.unwrap_or_else(|error| {
                tracing::debug!(session = %self.session, %error, "a question was not answered");
                QuestionAnswer::Cancelled
            })
        })
    }
}

impl CallQuestions {
    async fn put(
        &self,
        question: Question,
        withdrawn: &dyn CancelSignal,
    ) -> Result<QuestionAnswer, Error> {
        let (call, question) = (self.call.clone(), Box::new(question));
        let ask = Command::AskUser { call, question };
        let receipt = self.runtime.submit(&self.session, ask).await?;
        let asked = receipt.records.iter().find_map(|record| match &record.event {
            Event::QuestionAsked { id, .. } => Some((id.clone(), record.seq)),
            _ => None,
        });
        // The kernel decided that no user can be asked.
        let Some((id, seq)) = asked else { return Ok(QuestionAnswer::Declined) };
        tokio::select! {
            answer = self.answer(&id, seq) => answer,
            () = withdrawn.cancelled() => {
                let withdraw = Command::WithdrawQuestion { question: id };
                self.runtime.submit(&self.session, withdraw).await?;
                Ok(QuestionAnswer::Cancelled)
            }
        }
    }

    async fn answer(&self, question: &QuestionId, asked: Seq) -> Result<QuestionAnswer, Error> {
        let mut follow = self.runtime.follow(&self.session, Cursor::after(asked)).await?;
        while let Some(items) = follow.next().await? {
            for item in items {
                if let Item::Event(record) = &item
                    && let Event::QuestionAnswered { id, answer, .. } = &record.event
                    && id == question
                {
                    return Ok(answer.clone());
                }
            }
        }
        Err(Error::Closing)
    }
}
