//! Sends one message, prints the answer and exits.

mod writer;

use std::io::Write;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::connection::Incoming;
use crate::notice::{ApprovalRequest, Notice};
use crate::reconnect::{Reconnecting, RetryLimit, Update};
use crate::wire::{Decision, Request, RpcError, Size};
use crate::{Error, Settings};
use writer::AnswerWriter;
pub use writer::OutputFormat;

/// Maximum attempts to reopen a broken connection.
const RECONNECT_TRIES_LIMIT: u32 = 8;
/// The screen size that is reported without a screen.
const NO_SCREEN: Size = Size { cols: 80, rows: 24 };

/// A message to send, and how its answer is printed.
#[derive(Clone, Debug)]
pub struct PrintRequest {
    pub text: String,
    pub format: OutputFormat,
    pub approvals: Approvals,
}

/// How calls that need approval are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approvals {
    #[default]
    Refuse,
    Approve,
}

/// How the query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Answered,
    Failed,
    Cancelled,
}

/// The outputs for the answer and for notices.
pub struct Output<'a> {
    pub answer: &'a mut (dyn Write + Send),
    pub messages: &'a mut (dyn Write + Send),
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Output")
    }
}

/// Sends the message, prints the answer and returns. Ctrl-C cancels the query; a second one exits
/// at once.
pub async fn print(
    settings: &Settings,
    request: &PrintRequest,
    output: Output<'_>,
) -> Result<Ending, Error> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Error::Terminal)?;
    let (connection, _) =
        Reconnecting::open(settings, NO_SCREEN, RetryLimit::Tries(RECONNECT_TRIES_LIMIT)).await?;
    let mut run = PrintRun::new(settings, request, connection, output);
    run.begin().await;
    loop {
        let update = tokio::select! {
            update = run.connection.next(NO_SCREEN) => update?,
            _ = interrupts.recv() => match run.stop().await {
                Some(ending) => return Ok(ending),
                None => continue,
            },
        };
        if let Some(ending) = run.take(update).await? {
            return Ok(ending);
        }
    }
}

struct PrintRun<'a> {
    request: PrintRequest,
    model: Option<String>,
    connection: Reconnecting,
    writer: AnswerWriter<'a>,
    session: Option<String>,
    /// The query's id, once the daemon has sent it.
    query: Option<String>,
    submitted: bool,
    received_bytes: u64,
    stopping: bool,
}

impl<'a> PrintRun<'a> {
    fn new(
        settings: &Settings,
        request: &PrintRequest,
        connection: Reconnecting,
        output: Output<'a>,
    ) -> Self {
        Self {
            request: request.clone(),
            model: settings.model.clone(),
            connection,
            writer: AnswerWriter::new(request.format, output),
            session: settings.session.clone(),
            query: None,
            submitted: false,
            received_bytes: 0,
            stopping: false,
        }
    }

    async fn begin(&mut self) {
        match self.session.clone() {
            Some(session) => {
                self.connection.send(Request::Load { session, received_bytes: None }).await
            }
            None => self.submit().await,
        }
    }

    async fn submit(&mut self) {
        self.submitted = true;
        let (text, model) = (self.request.text.clone(), self.model.clone());
        self.connection.send(Request::Query { text, model }).await;
    }

    /// Cancels the query; the second time exits at once.
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

    async fn take(&mut self, update: Update) -> Result<Option<Ending>, Error> {
        match update {
            Update::Received(message, Incoming::Notice(notice)) => {
                if !self.is_own_query(&message) {
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
            Update::Back(_) => self.reconnected().await,
        }
    }

    /// True if a notification is about this query; the session may run another client's query first.
    fn is_own_query(&self, message: &Value) -> bool {
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
                    let end = self.received_bytes.saturating_add(token.text.len() as u64);
                    self.received_bytes = token.end.unwrap_or(end);
                    self.writer.token(&token.text)?;
                }
            }
            Notice::Block { block, .. } => self.writer.block(&block)?,
            Notice::Failed { message, .. } => self.writer.note(&message)?,
            Notice::Approval(request) => self.decide(*request).await?,
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

    async fn decide(&mut self, request: ApprovalRequest) -> Result<(), Error> {
        self.writer.pause();
        let (decision, said) = match self.request.approvals {
            // There is no user who could choose or type an answer.
            Approvals::Approve if request.choices.as_ref().is_some_and(|all| all.len() != 1) => {
                (Decision::No, "declined (it needs an answer)")
            }
            Approvals::Approve => (Decision::Once, "approved"),
            Approvals::Refuse => (Decision::No, "refused (--yes approves)"),
        };
        self.writer.note(&format!("{}: {}: {said}", request.sentence(), request.description))?;
        self.connection.send(Request::Approve { execution: request.execution, decision }).await;
        Ok(())
    }

    async fn answer(
        &mut self,
        request: &Request,
        answer: Result<Value, RpcError>,
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
        if !self.submitted {
            self.submit().await;
            return Ok(None);
        }
        let mut open = result["running_queries"].as_array().into_iter().flatten();
        if open.any(|query| query["query_id"].as_str() == self.query.as_deref()) {
            Ok(None)
        } else {
            // The query ended while this client was disconnected; only the session has its result.
            Err(Error::Refused(format!(
                "the connection broke while the answer was written; it is in session {}",
                self.session.as_deref().unwrap_or_default()
            )))
        }
    }

    /// Continues after a reconnect.
    async fn reconnected(&mut self) -> Result<Option<Ending>, Error> {
        match (&self.query, self.session.clone()) {
            (Some(_), Some(session)) => {
                self.connection
                    .send(Request::Load { session, received_bytes: Some(self.received_bytes) })
                    .await;
                Ok(None)
            }
            // The message may have been received; sending it again could repeat its effects.
            _ if self.submitted => Err(Error::ConnectionLost),
            _ => {
                self.begin().await;
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests;
