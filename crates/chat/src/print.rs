//! Asks one question, prints the answer and ends.

mod sheet;

use std::io::Write;

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use crate::heard::{Asked, Notice};
use crate::line::{Came, Line, Patience};
use crate::link::Heard;
use crate::wire::{Fault, Request, Size, Word};
use crate::{Error, Settings};
pub use sheet::Form;
use sheet::Sheet;

/// How often a connection that broke is looked for again.
const TRIES: u32 = 8;
/// What is said of a screen that is none.
const NO_SCREEN: Size = Size { cols: 80, rows: 24 };

/// A question and how to deal with what comes of it.
#[derive(Clone, Debug)]
pub struct Question {
    pub text: String,
    pub form: Form,
    pub consent: Consent,
}

/// What tools are told that ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    #[default]
    Refuse,
    Give,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Answered,
    Failed,
    Cancelled,
}

/// Where the answer and the remarks go.
pub struct Paper<'a> {
    pub answer: &'a mut (dyn Write + Send),
    pub remarks: &'a mut (dyn Write + Send),
}

impl std::fmt::Debug for Paper<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Paper")
    }
}

/// Asks, prints and ends. Ctrl-C stops the answer, and a second one does not wait for that.
pub async fn print(
    settings: &Settings,
    question: &Question,
    paper: Paper<'_>,
) -> Result<Ending, Error> {
    let mut interrupts = signal(SignalKind::interrupt()).map_err(Error::Terminal)?;
    let (line, _) = Line::open(settings, NO_SCREEN, Patience::Tries(TRIES)).await?;
    let mut errand = Errand::new(settings, question, line, paper);
    errand.begin().await;
    loop {
        let came = tokio::select! {
            came = errand.line.next(NO_SCREEN) => came?,
            _ = interrupts.recv() => match errand.stop().await {
                Some(ending) => return Ok(ending),
                None => continue,
            },
        };
        if let Some(ending) = errand.take(came).await? {
            return Ok(ending);
        }
    }
}

struct Errand<'a> {
    question: Question,
    model: Option<String>,
    line: Line,
    sheet: Sheet<'a>,
    session: Option<String>,
    /// The query, once it has a name.
    query: Option<String>,
    asked: bool,
    had: u64,
    stopping: bool,
}

impl<'a> Errand<'a> {
    fn new(settings: &Settings, question: &Question, line: Line, paper: Paper<'a>) -> Self {
        Self {
            question: question.clone(),
            model: settings.model.clone(),
            line,
            sheet: Sheet::new(question.form, paper),
            session: settings.session.clone(),
            query: None,
            asked: false,
            had: 0,
            stopping: false,
        }
    }

    async fn begin(&mut self) {
        match self.session.clone() {
            Some(session) => self.line.send(Request::Load { session, had: None }).await,
            None => self.ask().await,
        }
    }

    async fn ask(&mut self) {
        self.asked = true;
        let (text, model) = (self.question.text.clone(), self.model.clone());
        self.line.send(Request::Query { text, model }).await;
    }

    /// Stops the answer; if that is not the first time, at once.
    async fn stop(&mut self) -> Option<Ending> {
        match &self.query {
            Some(query) if !self.stopping => {
                let query = query.clone();
                self.stopping = true;
                self.line.send(Request::Cancel { query }).await;
                None
            }
            _ => Some(Ending::Cancelled),
        }
    }

    async fn take(&mut self, came: Came) -> Result<Option<Ending>, Error> {
        match came {
            Came::Heard(message, Heard::Notice(notice)) => {
                if !self.is_mine(&message) {
                    return Ok(None);
                }
                self.sheet.event(&message)?;
                self.notice(notice).await
            }
            Came::Heard(_, Heard::Answer(request, answer)) => self.answer(&request, answer).await,
            Came::Heard(message, Heard::Noise) => {
                self.sheet.event(&message)?;
                Ok(None)
            }
            Came::Lost => Ok(None),
            Came::Back(_) => self.back().await,
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
                    self.sheet.token(&token.text)?;
                }
            }
            Notice::Block { block, .. } => self.sheet.block(&block)?,
            Notice::Failed { message, .. } => self.sheet.remark(&message)?,
            Notice::Asked(asked) => self.decide(asked).await?,
            Notice::Complete { status, .. } => {
                self.sheet.end()?;
                return Ok(Some(match status.as_str() {
                    "success" => Ending::Answered,
                    "cancelled" => Ending::Cancelled,
                    _ => Ending::Failed,
                }));
            }
            Notice::Done(_) | Notice::Progress { .. } => self.sheet.pause(),
            Notice::Thinking { .. } => {}
        }
        Ok(None)
    }

    async fn decide(&mut self, asked: Asked) -> Result<(), Error> {
        self.sheet.pause();
        let (word, said) = match self.question.consent {
            Consent::Give => (Word::Once, "approved"),
            Consent::Refuse => (Word::No, "refused (--yes approves)"),
        };
        self.sheet.remark(&format!("{}: {}: {said}", asked.sentence(), asked.description))?;
        self.line.send(Request::Approve { execution: asked.execution, word }).await;
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
                self.line.send(Request::Load { session, had: Some(self.had) }).await;
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
