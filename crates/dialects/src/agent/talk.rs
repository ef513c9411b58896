//! What clients say to an agent, and answer it.

use quintet_kernel::command::{Approve, Command, Run, Say, Upload};
use quintet_kernel::event::{Answer, Answerer, Event, Remember, TurnOptions};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::model::{Count, Effort, ModelRef, Sampling};
use quintet_kernel::port::{self, Receipt};
use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::tool::{Outcome, Placement};
use quintet_kernel::{ClientRef, Question, Refusal, SessionId, State};
use serde_json::{Value, json};

use super::carry::{Done, Then, refused, watch};
use super::question::{FRONT_END, is_question};
use super::serve::Desk;
use super::shape;
use super::wire::{CONTEXT_OVERFLOW, NOTHING_PENDING};
use super::wish::{File, Message, Read, Response};
use crate::jsonrpc::Error;

/// A message of no more bytes fits every model.
const SURELY_FITS: usize = 4096;

impl Desk {
    pub(super) async fn message(&self, message: Message) -> Result<Done, Error> {
        let Message { session, text, files, model, effort, queue, key } = message;
        let model = self.model(model.as_deref()).await?;
        let effort = effort.as_deref().map(self::effort).transpose()?;
        if text.len() > SURELY_FITS {
            self.fits(&session, model.as_ref(), &text).await?;
        }
        let parts = (!text.is_empty()).then_some(Part::Text(text)).into_iter().collect();
        let sampling = Sampling { effort, ..Sampling::default() };
        let options = TurnOptions { model, sampling, key, ..TurnOptions::default() };
        let run = if queue { Run::Next } else { Run::Now };
        let files =
            if files.is_empty() { Vec::new() } else { self.keep(&session, files, queue).await? };
        let say = Say { files, ..Say::new(Role::User, parts, run, options) };
        let command = Command::Say(Box::new(say));
        let receipt = self.ports.sessions.submit(&session, command).await.map_err(refused)?;
        Ok(Done { result: acknowledged(&receipt), then: watch(&receipt) })
    }

    /// Whether a model can read a message at all, however much of the rest is summarized.
    async fn fits(
        &self,
        session: &SessionId,
        model: Option<&ModelRef>,
        text: &str,
    ) -> Result<(), Error> {
        let state = self.view(session).await?;
        let profile = self.ports.models.profile(model.unwrap_or(state.current_model()));
        let (tokens, window) =
            (Count::guess(text).tokens, profile.and_then(|profile| profile.context_window));
        match window.filter(|window| tokens > *window) {
            None => Ok(()),
            Some(window) => {
                let why = format!("the message is about {tokens} tokens, the model reads {window}");
                let data = json!({ "sessionId": session.as_str(), "contextLimit": window });
                Err(Error::new(CONTEXT_OVERFLOW, why).with(data))
            }
        }
    }

    /// Stores the files of a message, unless it is plain already that it will not be taken.
    async fn keep(
        &self,
        session: &SessionId,
        files: Vec<File>,
        queue: bool,
    ) -> Result<Vec<(MediaKind, Upload)>, Error> {
        let card = self.ports.sessions.card(session).await.map_err(refused)?;
        if card.open && !queue && self.view(session).await?.busy() {
            return Err(refused(port::Error::Refused(Refusal::Busy(session.clone()))));
        }
        let mut uploads = Vec::new();
        for File { name, mime, kind, content } in files {
            let size = content.len() as u64;
            let blob =
                self.ports.blobs.put(content).await.map_err(|error| refused(error.into()))?;
            uploads.push((kind, Upload { name, mime, blob, size }));
        }
        Ok(uploads)
    }

    pub(super) async fn abort(&self, session: &SessionId) -> Result<Done, Error> {
        let cancel = Command::Cancel { reason: Some("aborted by the client".into()) };
        let receipt = self.ports.sessions.submit(session, cancel).await.map_err(refused)?;
        Ok(json!({ "aborted": !receipt.records.is_empty() }).into())
    }

    pub(super) async fn respond(
        &self,
        session: SessionId,
        call: Option<&str>,
        response: Response,
    ) -> Result<Done, Error> {
        let (id, command) = answering(&*self.view(&session).await?, call, response)?;
        let receipt = self.ports.sessions.submit(&session, command).await.map_err(refused)?;
        let result = json!({
            "success": true, "acknowledged": true, "toolId": id.as_str(), "toolCallId": id.as_str(),
        });
        // An answer to a subagent is no wish to hear of it.
        let then = if receipt.session == session { watch(&receipt) } else { Then::Nothing };
        Ok(Done { result, then })
    }

    /// What the agent does, and since when.
    pub(super) async fn doing(&self, session: &SessionId) -> Result<Done, Error> {
        let state = self.view(session).await?;
        let events = match &state.open {
            Some(open) if !open.calls().is_empty() => {
                let types = ["tool.call", "tool.result"].map(String::from).into();
                let read = Read { types, ..Read::all(session.clone()) };
                let history = self.history(session).await?;
                let begins = state.turn(&open.id).map_or(0, |turn| turn.begins);
                let mut found = history.after(begins, &read).await.map_err(refused)?.events;
                found.reverse();
                found
            }
            _ => Vec::new(),
        };
        Ok(shape::doing(&state, &events).into())
    }
}

fn acknowledged(receipt: &Receipt) -> Value {
    let added = receipt.records.iter().find_map(|record| match &record.event {
        Event::MessageAdded { message, turn, nth, .. } => Some((record.seq, message, turn, *nth)),
        _ => None,
    });
    let Some((seq, message, turn, nth)) = added else { return json!({ "acknowledged": true }) };
    let starts = |event: &Event| matches!(event, Event::TurnStarted { turn: id, .. } if id == turn);
    json!({
        "acknowledged": true,
        "sessionId": receipt.session.as_str(),
        "messageId": message.as_str(),
        "turnId": turn.as_str(),
        "runId": turn.as_str(),
        "turn": nth,
        "sequence": seq,
        "queued": !receipt.records.iter().any(|record| starts(&record.event)),
    })
}

/// What an answer is to whom: to the call that is named, else to the turn that is held or the first
/// call that waits, of this session or of one that works for it.
fn answering(
    state: &State,
    named: Option<&str>,
    response: Response,
) -> Result<(Question, Command), Error> {
    let is_meant = |id: &str| named.is_none_or(|named| id == named);
    let held = state.open.as_ref().and_then(|open| open.question());
    if let Some(held) = held.filter(|held| is_meant(held.as_str())) {
        return Ok((held.clone(), Command::Approve(word(held, response)?)));
    }
    let waits = |call: &&Call| {
        let waits = match call.phase {
            CallPhase::Asked { .. } => true,
            CallPhase::Started(_, Placement::Client) => is_question(call.front_end.as_deref()),
            _ => false,
        };
        waits && is_meant(call.id().as_str())
    };
    if let Some(call) = state.open.iter().flat_map(|open| open.calls()).find(waits) {
        let id = call.id().clone();
        let command = match &call.phase {
            CallPhase::Asked { .. } => Command::Approve(word(id.clone().into(), response)?),
            _ => {
                let (call, by) = (id.clone(), ClientRef::named(FRONT_END));
                Command::Return { call, by, outcome: outcome(response) }
            }
        };
        return Ok((id.into(), command));
    }
    match state.asked.iter().find(|asked| is_meant(asked.question.as_str())) {
        Some(asked) => {
            let question = asked.question.clone();
            Ok((question.clone(), Command::Approve(word(question, response)?)))
        }
        None => Err(Error::new(NOTHING_PENDING, "nothing waits for this answer")),
    }
}

fn word(question: Question, response: Response) -> Result<Approve, Error> {
    let (allow, reason) = match response {
        Response::Word { allow, reason } => (allow, reason),
        Response::Said { text, .. } => match text.trim().to_lowercase().as_str() {
            "yes" | "y" | "allow" | "approve" | "ok" | "true" => (true, None),
            "no" | "n" | "deny" | "reject" | "false" => (false, None),
            _ => return Err(Error::field("response", "allow or deny")),
        },
    };
    let answer = if allow { Answer::Allow } else { Answer::Deny };
    let (by, remember) = (Answerer::Client, Remember::Once);
    Ok(Approve { question, turn: None, answer, reason, by, remember })
}

fn outcome(response: Response) -> Outcome {
    match response {
        Response::Said { text, failed: false } => Outcome::success(text),
        Response::Said { text, failed: true } => Outcome::failure(text),
        Response::Word { allow, reason } => {
            let word = if allow { "yes" } else { "no" };
            Outcome::success(reason.map_or(word.into(), |reason| format!("{word}: {reason}")))
        }
    }
}

fn effort(word: &str) -> Result<Effort, Error> {
    let quoted = Value::String(word.into());
    serde_json::from_value(quoted).map_err(|_| Error::field("reasoningLevel", "a known level"))
}
