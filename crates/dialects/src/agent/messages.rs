//! Messages to an agent, and answers to its questions.

use futures_util::FutureExt as _;
use quintet_kernel::command::{Approve, Command, NewAttachment, NewMessage, TurnStart};
use quintet_kernel::event::{ApprovalDecision, DecidedBy, RememberScope, TurnOptions};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::model::{Channel, Effort, ModelRef, Sampling, TokenCount};
use quintet_kernel::port::{self, Receipt};
use quintet_kernel::question::Question;
use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{
    ApprovalId, CallId, ClientRef, Cursor, Item, QuestionId, Refusal, SessionId, State,
};
use serde_json::{Value, json};

use super::dispatch::{FollowUp, Reply, refused, subscribe};
use super::question::{FRONT_END, is_question};
use super::request::{File, Message, Read, Response};
use super::serve::AppState;
use super::shape;
use super::shown_questions::ShownQuestions;
use super::wire::{CONTEXT_OVERFLOW, NOTHING_PENDING};
use crate::jsonrpc::Error;

/// Bytes of a message that fits every model.
const FITS_ANY_MODEL_BYTES: usize = 4096;
/// The most tokens of a message to a model whose context window is not known: 1 MiB of text.
const UNKNOWN_WINDOW_LIMIT: u64 = 262_144;

impl AppState {
    pub(super) async fn message(&self, message: Message) -> Result<Reply, Error> {
        let Message { session, text, files, model, effort, queue, key } = message;
        let model = self.model(model.as_deref()).await?;
        let effort = effort.as_deref().map(self::effort).transpose()?;
        if text.len() > FITS_ANY_MODEL_BYTES {
            self.fits(&session, model.as_ref(), &text).await?;
        }
        let parts = (!text.is_empty()).then_some(Part::Text(text)).into_iter().collect();
        let sampling = Sampling { effort, ..Sampling::default() };
        let options = TurnOptions { model, sampling, key, ..TurnOptions::default() };
        let run = if queue { TurnStart::Queued } else { TurnStart::Now };
        let files = if files.is_empty() {
            Vec::new()
        } else {
            self.store_files(&session, files, queue).await?
        };
        let say = NewMessage { files, ..NewMessage::new(Role::User, parts, run, options) };
        let command = Command::AddMessage(Box::new(say));
        let receipt = self.services.sessions.submit(&session, command).await.map_err(refused)?;
        Ok(Reply { result: acknowledged(&receipt), then: subscribe(&receipt) })
    }

    /// Fails if no model could read a message, however much of the rest is summarized.
    async fn fits(
        &self,
        session: &SessionId,
        model: Option<&ModelRef>,
        text: &str,
    ) -> Result<(), Error> {
        let state = self.view(session).await?;
        let profile = self.services.models.profile(model.unwrap_or(state.current_model()));
        let (tokens, known) =
            (TokenCount::guess(text).tokens, profile.and_then(|profile| profile.context_window));
        let window = known.unwrap_or(UNKNOWN_WINDOW_LIMIT);
        if tokens <= window {
            return Ok(());
        }
        let reads = match known {
            Some(_) => format!("the model reads {window}"),
            None => format!("a model whose context window is not known is sent at most {window}"),
        };
        let data = json!({ "sessionId": session.as_str(), "contextLimit": window });
        let why = format!("the message is about {tokens} tokens, {reads}");
        Err(Error::new(CONTEXT_OVERFLOW, why).with(data))
    }

    /// Stores the files of a message, unless it is clear already that it will be refused.
    async fn store_files(
        &self,
        session: &SessionId,
        files: Vec<File>,
        queue: bool,
    ) -> Result<Vec<(MediaKind, NewAttachment)>, Error> {
        let summary = self.services.sessions.summary(session).await.map_err(refused)?;
        if summary.open && !queue && self.view(session).await?.busy() {
            return Err(refused(port::Error::Refused(Refusal::Busy(session.clone()))));
        }
        let mut uploads = Vec::new();
        for File { name, mime, kind, content } in files {
            let size = content.len() as u64;
            let blob =
                self.services.blobs.put(content).await.map_err(|error| refused(error.into()))?;
            uploads.push((kind, NewAttachment { name, mime, blob, size }));
        }
        Ok(uploads)
    }

    pub(super) async fn abort(&self, session: &SessionId) -> Result<Reply, Error> {
        let cancel = Command::Cancel { reason: Some("aborted by the client".into()) };
        let receipt = self.services.sessions.submit(session, cancel).await.map_err(refused)?;
        Ok(json!({ "aborted": !receipt.records.is_empty() }).into())
    }

    pub(super) async fn respond(
        &self,
        session: SessionId,
        target: AnswerTarget<'_>,
        response: Response,
    ) -> Result<Reply, Error> {
        let (id, command) = answer_command(&*self.view(&session).await?, target, response)?;
        let receipt = self.services.sessions.submit(&session, command).await.map_err(refused)?;
        let result = json!({
            "success": true, "acknowledged": true, "toolId": id.as_str(), "toolCallId": id.as_str(),
        });
        // Answering a subagent does not subscribe to it.
        let then = if receipt.session == session { subscribe(&receipt) } else { FollowUp::Nothing };
        Ok(Reply { result, then })
    }

    /// Shows what the agent is doing, and since when.
    pub(super) async fn agent_status(&self, session: &SessionId) -> Result<Reply, Error> {
        let state = self.view(session).await?;
        let in_flight = self.text_in_flight(session, &state).await?;
        let events = match &state.open {
            Some(open) => {
                let types = ["tool.call", "tool.result"].map(String::from).into();
                let read = Read { types, ..Read::all(session.clone()) };
                let history = self.history(session).await?;
                let begins = state.turn(&open.id).map_or(0, |turn| turn.begins);
                let mut found = history.after(begins, &read).await.map_err(refused)?.events;
                found.reverse();
                found
            }
            None => Vec::new(),
        };
        Ok(shape::agent_status(&state, &in_flight, &events).into())
    }

    /// The text of the model that is not in the journal yet.
    async fn text_in_flight(&self, session: &SessionId, state: &State) -> Result<String, Error> {
        let Some(step) = state.open.as_ref().and_then(|open| open.step()) else {
            return Ok(String::new());
        };
        let written = step.output.iter().map(|segment| segment.text.len() as u64).sum();
        let from = Cursor { seq: state.head, offset: written };
        let mut follow = self.services.sessions.follow(session, from).await.map_err(refused)?;
        // Only what is there: this is a look, not a wait.
        let items = follow.next().now_or_never().and_then(Result::ok).flatten().unwrap_or_default();
        let said = items.into_iter().filter_map(|item| match item {
            Item::Text { channel: Channel::Text, text, .. } => Some(text.to_string()),
            Item::Text { .. } | Item::Event(_) | Item::Progress { .. } => None,
        });
        Ok(said.collect())
    }
}

fn acknowledged(receipt: &Receipt) -> Value {
    let Some(added) = receipt.message() else { return json!({ "acknowledged": true }) };
    json!({
        "acknowledged": true,
        "sessionId": receipt.session.as_str(),
        "messageId": added.message.as_str(),
        "turnId": added.turn.as_str(),
        "runId": added.turn.as_str(),
        "turn": added.nth,
        "sequence": added.seq,
        "queued": !added.started,
    })
}

/// What an answer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerTarget<'a> {
    /// The question with this id.
    Named(&'a str),
    /// The only question that waits, if the client was shown it.
    OnlyShown(&'a ShownQuestions),
}

impl AnswerTarget<'_> {
    /// Picks the question from all that wait. Fails if it is not there or not clear.
    fn pick(self, waiting: Vec<Waiting>) -> Result<Waiting, Error> {
        let none = || Error::new(NOTHING_PENDING, "nothing waits for this answer");
        match self {
            Self::Named(id) => {
                waiting.into_iter().find(|one| one.question().as_str() == id).ok_or_else(none)
            }
            Self::OnlyShown(shown) => match <[Waiting; 1]>::try_from(waiting) {
                Ok([one]) if shown.has(&one.question()) => Ok(one),
                Err(waiting) if waiting.is_empty() => Err(none()),
                Ok(_) | Err(_) => Err(Error::field("toolId", "the id of what is answered")),
            },
        }
    }
}

/// Something that waits for a person.
enum Waiting {
    /// An approval: may a call run, or a turn go on?
    Approval(ApprovalId),
    /// A question of the model.
    Question(CallId),
    /// A question of a running call.
    Asked(QuestionId, Box<Question>),
}

impl Waiting {
    fn question(&self) -> ApprovalId {
        match self {
            Self::Approval(question) => question.clone(),
            Self::Question(call) => call.clone().into(),
            Self::Asked(id, _) => id.clone().into(),
        }
    }
}

/// All that waits, in a session and in its subagents.
fn waiting(state: &State) -> Vec<Waiting> {
    let of_call = |call: &Call| match call.phase {
        CallPhase::Asked { .. } => Some(Waiting::Approval(call.id().clone().into())),
        CallPhase::Started(_, Placement::Client) if is_question(call.front_end.as_deref()) => {
            Some(Waiting::Question(call.id().clone()))
        }
        _ => None,
    };
    let held = state.open.iter().filter_map(|open| open.question()).map(Waiting::Approval);
    let own = state.open.iter().flat_map(|open| open.calls()).filter_map(of_call);
    let questions = state.open.iter().flat_map(|open| &open.questions);
    let questions = questions.map(|asked| Waiting::Asked(asked.id.clone(), asked.question.clone()));
    let theirs = state.asked.iter().map(|asked| {
        match (&asked.question, Question::from_input(&asked.input)) {
            (ApprovalId::Question(id), Some(question)) => {
                Waiting::Asked(id.clone(), question.into())
            }
            (id, _) => Waiting::Approval(id.clone()),
        }
    });
    held.chain(own).chain(questions).chain(theirs).collect()
}

/// The command that gives an answer, and the question that it is for.
fn answer_command(
    state: &State,
    target: AnswerTarget<'_>,
    response: Response,
) -> Result<(ApprovalId, Command), Error> {
    let one = target.pick(waiting(state))?;
    let question = one.question();
    let command = match one {
        Waiting::Approval(question) => Command::Approve(approval(question, response)?),
        Waiting::Question(call) => {
            let by = ClientRef::named(FRONT_END);
            Command::ReturnResult { call, by, outcome: outcome(response) }
        }
        Waiting::Asked(id, question) => Command::Approve(answered(id, &question, response)?),
    };
    Ok((question, command))
}

/// The answer to an approval. Text that a person typed is none, whatever it says.
fn approval(question: ApprovalId, response: Response) -> Result<Approve, Error> {
    let Response::Decision { allow, reason } = response else {
        return Err(Error::field("response", "an object with `approved` or `decision`"));
    };
    let answer = if allow { ApprovalDecision::Allow } else { ApprovalDecision::Deny };
    let (by, remember) = (DecidedBy::Client, RememberScope::Once);
    Ok(Approve { question, turn: None, answer, reason, by, remember, content: None })
}

/// The answer to a question of a running call: one of its choices, its values, or yes or no.
fn answered(id: QuestionId, question: &Question, response: Response) -> Result<Approve, Error> {
    let Response::Text { text, failed: false } = response else {
        return match response {
            Response::Text { text, failed: _ } => {
                approval(id.into(), Response::Decision { allow: false, reason: Some(text) })
            }
            decision @ Response::Decision { .. } => approval(id.into(), decision),
        };
    };
    let wrong = || Error::field("response", "one of the options, or the values of the schema");
    let content = Some(question.content_of(&text).ok_or_else(wrong)?);
    let yes = approval(id.into(), Response::Decision { allow: true, reason: None })?;
    Ok(Approve { content, ..yes })
}

fn outcome(response: Response) -> Outcome {
    match response {
        Response::Text { text, failed: false } => Outcome::success(text),
        Response::Text { text, failed: true } => Outcome::failure(text),
        Response::Decision { allow, reason } => {
            let word = if allow { "yes" } else { "no" };
            Outcome::success(reason.map_or(word.into(), |reason| format!("{word}: {reason}")))
        }
    }
}

fn effort(word: &str) -> Result<Effort, Error> {
    let quoted = Value::String(word.into());
    serde_json::from_value(quoted).map_err(|_| Error::field("reasoningLevel", "a known level"))
}
