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

use super::dispatch::{FollowUp, Reply, rpc_error, subscribe};
use super::question::{FRONT_END, is_question};
use super::request::{EventQuery, File, Message, Response};
use super::serve::AppState;
use super::shape;
use super::shown_questions::ShownQuestions;
use super::wire::{CONTEXT_OVERFLOW, NOTHING_PENDING};
use crate::jsonrpc::Error;

/// Messages up to this size fit the context window of every model.
const FITS_ANY_MODEL_BYTES: usize = 4096;
/// The most tokens of a message to a model whose context window is not known: 1 MiB of text.
const UNKNOWN_WINDOW_LIMIT: u64 = 262_144;

impl AppState {
    pub(super) async fn message(&self, message: Message) -> Result<Reply, Error> {
        let Message { session, text, files, model, effort, queue, key } = message;
        let model = self.model(model.as_deref()).await?;
        let effort = effort.as_deref().map(self::effort).transpose()?;
        if text.len() > FITS_ANY_MODEL_BYTES {
            self.check_size(&session, model.as_ref(), &text).await?;
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
        let message = NewMessage { files, ..NewMessage::new(Role::User, parts, run, options) };
        let command = Command::AddMessage(Box::new(message));
        let receipt = self.services.sessions.submit(&session, command).await.map_err(rpc_error)?;
        Ok(Reply { result: acknowledgement(&receipt), then: subscribe(&receipt) })
    }

    /// Fails if a message is larger than the context window, so that no compaction would help.
    async fn check_size(
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
        let limit = match known {
            Some(_) => format!("the model reads at most {window}"),
            None => format!("a model whose context window is not known is sent at most {window}"),
        };
        let data = json!({ "sessionId": session.as_str(), "contextLimit": window });
        let why = format!("the message is about {tokens} tokens, {limit}");
        Err(Error::new(CONTEXT_OVERFLOW, why).with(data))
    }

    /// Stores the files of a message, unless the message would be refused because a turn is open.
    async fn store_files(
        &self,
        session: &SessionId,
        files: Vec<File>,
        queue: bool,
    ) -> Result<Vec<(MediaKind, NewAttachment)>, Error> {
        let summary = self.services.sessions.summary(session).await.map_err(rpc_error)?;
        if summary.open && !queue && self.view(session).await?.busy() {
            return Err(rpc_error(port::Error::Refused(Refusal::Busy(session.clone()))));
        }
        let mut uploads = Vec::new();
        for File { name, mime, kind, content } in files {
            let size = content.len() as u64;
            let blob =
                self.services.blobs.put(content).await.map_err(|error| rpc_error(error.into()))?;
            uploads.push((kind, NewAttachment { name, mime, blob, size }));
        }
        Ok(uploads)
    }

    pub(super) async fn abort(&self, session: &SessionId) -> Result<Reply, Error> {
        let cancel = Command::Cancel { reason: Some("aborted by the client".into()) };
        let receipt = self.services.sessions.submit(session, cancel).await.map_err(rpc_error)?;
        Ok(json!({ "aborted": !receipt.records.is_empty() }).into())
    }

    pub(super) async fn respond(
        &self,
        session: SessionId,
        target: AnswerTarget<'_>,
        response: Response,
    ) -> Result<Reply, Error> {
        let (id, command) = answer_command(&*self.view(&session).await?, target, response)?;
        let receipt = self.services.sessions.submit(&session, command).await.map_err(rpc_error)?;
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
                let query = EventQuery { types, ..EventQuery::all(session.clone()) };
                let history = self.history(session).await?;
                let begins = state.turn(&open.id).map_or(0, |turn| turn.begins);
                let mut found = history.after(begins, &query).await.map_err(rpc_error)?.events;
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
        let mut follow = self.services.sessions.follow(session, from).await.map_err(rpc_error)?;
        // Takes only what is available now.
        let items = follow.next().now_or_never().and_then(Result::ok).flatten().unwrap_or_default();
        let texts = items.into_iter().filter_map(|item| match item {
            Item::Text { channel: Channel::Text, text, .. } => Some(text.to_string()),
            Item::Text { .. } | Item::Event(_) | Item::Progress { .. } => None,
        });
        Ok(texts.collect())
    }
}

fn acknowledgement(receipt: &Receipt) -> Value {
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

/// The question that an answer is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum AnswerTarget<'a> {
    /// The question with this id.
    Named(&'a str),
    /// The only open question, if the client was shown it.
    OnlyShown(&'a ShownQuestions),
}

impl AnswerTarget<'_> {
    /// Picks the question from all open ones. Fails if it is not open or ambiguous.
    fn pick(self, open: Vec<OpenQuestion>) -> Result<OpenQuestion, Error> {
        let none = || Error::new(NOTHING_PENDING, "no open question for this answer");
        match self {
            Self::Named(id) => {
                open.into_iter().find(|one| one.id().as_str() == id).ok_or_else(none)
            }
            Self::OnlyShown(shown) => match <[OpenQuestion; 1]>::try_from(open) {
                Ok([one]) if shown.has(&one.id()) => Ok(one),
                Err(open) if open.is_empty() => Err(none()),
                Ok(_) | Err(_) => {
                    Err(Error::field("toolId", "the id of the question that is answered"))
                }
            },
        }
    }
}

/// A question that waits for the user.
enum OpenQuestion {
    /// An approval for a call, or for continuing a turn.
    Approval(ApprovalId),
    /// A question that the model asks with a tool.
    AskUser(CallId),
    /// A question of a running call.
    RunningCall(QuestionId, Box<Question>),
}

impl OpenQuestion {
    fn id(&self) -> ApprovalId {
        match self {
            Self::Approval(question) => question.clone(),
            Self::AskUser(call) => call.clone().into(),
            Self::RunningCall(id, _) => id.clone().into(),
        }
    }
}

/// All open questions of a session and its subagents.
fn open_questions(state: &State) -> Vec<OpenQuestion> {
    let of_call = |call: &Call| match call.phase {
        CallPhase::Asked { .. } => Some(OpenQuestion::Approval(call.id().clone().into())),
        CallPhase::Started(_, Placement::Client) if is_question(call.front_end.as_deref()) => {
            Some(OpenQuestion::AskUser(call.id().clone()))
        }
        _ => None,
    };
    let held = state.open.iter().filter_map(|open| open.question()).map(OpenQuestion::Approval);
    let own = state.open.iter().flat_map(|open| open.calls()).filter_map(of_call);
    let questions = state.open.iter().flat_map(|open| &open.questions);
    let questions =
        questions.map(|asked| OpenQuestion::RunningCall(asked.id.clone(), asked.question.clone()));
    let of_subagents = state.asked.iter().map(|asked| {
        match (&asked.question, Question::from_input(&asked.input)) {
            (ApprovalId::Question(id), Some(question)) => {
                OpenQuestion::RunningCall(id.clone(), question.into())
            }
            (id, _) => OpenQuestion::Approval(id.clone()),
        }
    });
    held.chain(own).chain(questions).chain(of_subagents).collect()
}

/// The command for an answer, and the question that it answers.
fn answer_command(
    state: &State,
    target: AnswerTarget<'_>,
    response: Response,
) -> Result<(ApprovalId, Command), Error> {
    let one = target.pick(open_questions(state))?;
    let question = one.id();
    let command = match one {
        OpenQuestion::Approval(question) => Command::Approve(approval(question, response)?),
        OpenQuestion::AskUser(call) => {
            let by = ClientRef::named(FRONT_END);
            Command::ReturnResult { call, by, outcome: outcome(response) }
        }
        OpenQuestion::RunningCall(id, question) => {
            Command::Approve(question_answer(id, &question, response)?)
        }
    };
    Ok((question, command))
}

/// The decision on an approval. Typed text is never a decision, whatever its content.
fn approval(question: ApprovalId, response: Response) -> Result<Approve, Error> {
    let Response::Decision { allow, reason } = response else {
        return Err(Error::field("response", "an object with `approved` or `decision`"));
    };
    let answer = if allow { ApprovalDecision::Allow } else { ApprovalDecision::Deny };
    let (by, remember) = (DecidedBy::Client, RememberScope::Once);
    Ok(Approve { question, turn: None, answer, reason, by, remember, content: None })
}

/// The answer to a question of a running call: one of its choices, its values, or a decision.
fn question_answer(
    id: QuestionId,
    question: &Question,
    response: Response,
) -> Result<Approve, Error> {
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
