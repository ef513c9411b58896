//! Asks one question, prints the answer and ends.

mod writer;

use std::io::Write;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::connection::Incoming;
use crate::notice::{ApprovalRequest, Notice};
use crate::reconnect::{Reconnecting, RetryLimit, Update};
use crate::wire::{Decision, Fault, Request, Size};
use crate::{Error, Settings};
use writer::AnswerWriter;
pub use writer::Form;

/// How often a connection that broke is looked for again.
const TRIES: u32 = 8;
/// What is said of a screen that is none.
const NO_SCREEN: Size = Size { cols: 80, rows: 24 };

/// A question and how to deal with what comes of it.
#[derive(Clone, Debug)]
pub struct Question {
    pub text: String,
    pub form: Form,
    pub approvals: Approvals,
}

/// How calls that need approval are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    #[default]
    Refuse,
    Approve,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Answered,
    Failed,
    Cancelled,
}

/// Where the answer and the remarks go.
pub struct Output<'a> {
    pub answer: &'a mut (dyn Write + Send),
    pub remarks: &'a mut (dyn Write + Send),
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Output")
    }
}

/// Asks, prints and ends. Ctrl-C stops the answer, and a second one does not wait for that.
pub async fn print(
    settings: &Settings,
    question: &Question,
    output: Output<'_>,
) -> Result<Ending, Error> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Error::Terminal)?;
    let (connection, _) = Reconnecting::open(settings, NO_SCREEN, RetryLimit::Tries(TRIES)).await?;
    let mut run = PrintRun::new(settings, question, connection, output);
    run.begin().await;
    loop {
        let came = tokio::select! {
            came = run.connection.next(NO_SCREEN) => came?,
            _ = interrupts.recv() => match run.stop().await {
                Some(ending) => return Ok(ending),
                None => continue,
            },
        };
        if let Some(ending) = run.take(came).await? {
            return Ok(ending);
        }
    }
}

struct PrintRun<'a> {
    question: Question,
    model: Option<String>,
    connection: Reconnecting,
    writer: AnswerWriter<'a>,
    session: Option<String>,
    /// The query, once it has a name.
    query: Option<String>,
    asked: bool,
    had: u64,
    stopping: bool,
}

impl<'a> PrintRun<'a> {
    fn new(
        settings: &Settings,
        question: &Question,
        connection: Reconnecting,
        output: Output<'a>,
    ) -> Self {
        Self {
            question: question.clone(),
            model: settings.model.clone(),
            connection,
            writer: AnswerWriter::new(question.form, output),
            session: settings.session.clone(),
            query: None,
            asked: false,
            had: 0,
            stopping: false,
        }
    }

    async fn begin(&mut self) {
        match self.session.clone() {
            Some(session) => self.connection.send(Request::Load { session, had: None }).await,
            None => self.ask().await,
        }
    }

    async fn ask(&mut self) {
        self.asked = true;
        let (text, model) = (self.question.text.clone(), self.model.clone());
        self.connection.send(Request::Query { text, model }).await;
    }

    /// Stops the answer; if that is not the first time, at once.
    async fn stop(&mut self) -> Option<Ending> {
        match &self.query {
            Some(query) if !self.stopping => {
                let query = query.clone();
                self.stopping = true;
                self.connection.send(Request::Cancel { query }).await;
                None
            }
            _ => Some(Ending::Cancelled),
        }
    }

    async fn take(&mut self, came: Update) -> Result<Option<Ending>, Error> {
        match came {
            Update::Received(message, Incoming::Notice(notice)) => {
                if !self.is_mine(&message) {
                    return Ok(None);
                }
                self.writer.event(&message)?;
                self.notice(notice).await
            }
            Update::Received(_, Incoming::Answer(request, answer)) => {
                self.answer(&request, answer).await
            }
            Update::Received(message, Incoming::Unknown) => {
                self.writer.event(&message)?;
                Ok(None)
            }
            Update::Lost => Ok(None),
            Update::Back(_) => self.back().await,
        }
    }

    /// A session may be busy with somebody else's question before it comes to this one.
    fn is_mine(&self, message: &Value) -> bool {
        let about = message.pointer("/params/query_id").and_then(Value::as_str);
        match (&self.query, about) {
            (Some(mine), Some(about)) => mine == about,
            (None, Some(_)) => false,
            (_, None) => true,
        }
    }

    async fn notice(&mut self, notice: Notice) -> Result<Option<Ending>, Error> {
        match notice {
            Notice::Tokens { tokens, .. } => {
                for token in tokens {
                    let end = self.had.saturating_add(token.text.len() as u64);
                    self.had = token.end.unwrap_or(end);
                    self.writer.token(&token.text)?;
                }
            }
            Notice::Block { block, .. } => self.writer.block(&block)?,
            Notice::Failed { message, .. } => self.writer.remark(&message)?,
            Notice::Approval(asked) => self.decide(*asked).await?,
            Notice::Complete { status, .. } => {
                self.writer.end()?;
                return Ok(Some(match status.as_str() {
                    "success" => Ending::Answered,
                    "cancelled" => Ending::Cancelled,
                    _ => Ending::Failed,
                }));
            }
            Notice::CallEnded(_) | Notice::Progress { .. } => self.writer.pause(),
            Notice::Thinking { .. } => {}
        }
        Ok(None)
    }

    async fn decide(&mut self, asked: ApprovalRequest) -> Result<(), Error> {
        self.writer.pause();
        let (decision, said) = match self.question.approvals {
            Approvals::Approve => (Decision::Once, "approved"),
            Approvals::Refuse => (Decision::No, "refused (--yes approves)"),
        };
        self.writer.remark(&format!("{}: {}: {said}", asked.sentence(), asked.description))?;
        self.connection.send(Request::Approve { execution: asked.execution, decision }).await;
        Ok(())
    }

    async fn answer(
        &mut self,
        request: &Request,
        answer: Result<Value, Fault>,
    ) -> Result<Option<Ending>, Error> {
        match (request, answer) {
            (Request::Query { .. } | Request::Load { .. }, Err(fault)) => {
                Err(Error::Refused(fault.message))
            }
            (Request::Query { .. }, Ok(result)) => {
                let name = |field: &str| result[field].as_str().map(str::to_owned);
                (self.query, self.session) = (name("query_id"), name("session_id"));
                Ok(None)
            }
            (Request::Load { .. }, Ok(result)) => self.loaded(&result).await,
            (_, Ok(_) | Err(_)) => Ok(None),
        }
    }

    async fn loaded(&mut self, result: &Value) -> Result<Option<Ending>, Error> {
        if !self.asked {
            self.ask().await;
            return Ok(None);
        }
        let mut open = result["running_queries"].as_array().into_iter().flatten();
        match open.any(|query| query["query_id"].as_str() == self.query.as_deref()) {
            true => Ok(None),
            // It ended while nobody listened; how, only the session knows.
            false => Err(Error::Refused(format!(
                "the connection broke while the answer was written; it is in session {}",
                self.session.as_deref().unwrap_or_default()
            ))),
        }
    }

    /// The daemon is there again.
    async fn back(&mut self) -> Result<Option<Ending>, Error> {
        match (&self.query, self.session.clone()) {
            (Some(_), Some(session)) => {
                self.connection.send(Request::Load { session, had: Some(self.had) }).await;
                Ok(None)
            }
            // It may have been asked or not; asking twice could do something twice.
            _ if self.asked => Err(Error::Gone),
            _ => {
                self.begin().await;
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests;
