//! Summaries and titles, written by the configured model.

use std::time::Duration;

use axum::Json;
use quintet_kernel::model::{
    Channel, Chunk, Failure, FailureKind, ModelRef, Prompt, PromptMessage, PromptPart, Sampling,
    WebSearch,
};
use serde_json::{Value, json};

use super::reply::Reply;
use super::written::{summary, title};
use super::{Body, Caller, JsonReply};
use crate::windie::auth::User;
use crate::windie::fields::Object;
use crate::windie::serve::AppState;
use crate::windie::wire::user_settings::{Choice, choice};

/// The most of one conversation or message, in characters.
const TEXT_CHARS_LIMIT: usize = 32_768;
const CONVERSATIONS_LIMIT: usize = 100;
const LONGEST_MODEL: usize = 256;
const LONGEST_PROVIDER: usize = 128;
const LONGEST_USER: usize = 256;
/// The most that a model may write, in bytes; what comes after it is not read.
const LONGEST_ANSWER: usize = 16 * 1024 * 1024;
const MODEL_TIMEOUT: Duration = Duration::from_secs(300);

const SUMMARIZE: &str = "You turn conversations into long-term memory. Read them and answer in \
    exactly this form and nothing else:\n\nSUMMARY:\n<one short paragraph of what matters \
    beyond today>\n\nFACTS:\n- <one lasting fact about the user or the work>\n- <another>\n\n\
    Leave out what is only of the moment. If there is no fact, leave the list empty.";
const NAME: &str = "You name conversations. Answer with a title of two to six words that says what \
    this one is about: no quotation marks, no full stop, nothing before or after it.";

/// `POST /api/semantic/summarize`.
pub(super) async fn summarize(Caller { app, user }: Caller, body: Body) -> JsonReply {
    let conversations = body.read(|body| {
        let texts = body.needed("conversations").entries(1..=CONVERSATIONS_LIMIT);
        let texts = texts.iter().filter_map(|text| text.text(0..=TEXT_CHARS_LIMIT)).collect();
        check_user(body, user.as_ref());
        texts
    })?;
    let conversations: Vec<String> = conversations;
    let shown = conversations.iter().zip(1..);
    let shown: Vec<String> =
        shown.map(|(text, number)| format!("Conversation {number}:\n{text}")).collect();
    let model = named(&app.settings.default_model, None, None);
    let written = ask(&app, model, SUMMARIZE, shown.join("\n\n")).await?;
    let (summary, facts) = summary(&written);
    Ok(Json(json!({ "summary": summary, "facts": facts, "success": true })))
}

/// `POST /api/semantic/title`.
pub(super) async fn name(Caller { app, user }: Caller, body: Body) -> JsonReply {
    let (shown, model) = body.read(|body| {
        check_user(body, user.as_ref());
        let asked = body.needed_text("user_message", 0..=TEXT_CHARS_LIMIT);
        let answered = body.needed_text("assistant_message", 0..=TEXT_CHARS_LIMIT);
        let id = body.text("model_id", 0..=LONGEST_MODEL);
        let provider = body.text("model_provider", 0..=LONGEST_PROVIDER);
        let model = named(&app.settings.default_model, id.as_deref(), provider.as_deref());
        (format!("User:\n{asked}\n\nAssistant:\n{answered}"), model)
    })?;
    let written = ask(&app, model, NAME, shown).await?;
    Ok(Json(json!({ "title": title(&written), "success": true })))
}

/// `GET /api/semantic/health`.
pub(super) async fn health() -> Json<Value> {
    Json(json!({ "status": "healthy", "message": "Semantic summarization service ready" }))
}

/// Checks the user id of a body, which may be left out where the token says who the user is.
fn check_user(body: &Object<'_>, user: Option<&User>) {
    let field = if user.is_some() { body.field("user_id") } else { body.needed("user_id") };
    let Some(name) = field.text(1..=LONGEST_USER) else { return };
    if name == "default_user" {
        body.wrong("user_id", "Value error, user_id cannot be default_user");
    } else if name.trim().is_empty() {
        body.wrong("user_id", "Value error, user_id cannot be blank");
    }
}

/// The model that a client names, or ours.
fn named(ours: &ModelRef, id: Option<&str>, provider: Option<&str>) -> Choice {
    let given = |text: Option<&'_ str>| {
        text.map(str::trim).filter(|text| !text.is_empty()).map(String::from)
    };
    let provider = given(provider).unwrap_or_else(|| ours.provider.clone());
    match given(id) {
        Some(id) => choice(&provider, &id),
        None => Choice { model: ours.clone(), effort: None },
    }
}

/// Asks a model once, with no tools and no memory of it. One that is not to be had makes way for ours.
async fn ask(app: &AppState, choice: Choice, system: &str, text: String) -> Result<String, Reply> {
    let ours = &app.settings.default_model;
    let mut prompt = Prompt {
        model: choice.model,
        system: system.into(),
        messages: vec![PromptMessage::User(vec![PromptPart::Text(text)]).into()],
        tools: Vec::new(),
        may_call: false,
        search: WebSearch::Off,
        sampling: Sampling { effort: choice.effort, ..Sampling::default() },
        account: None,
    };
    let slow = || Reply::new(504, "The model took too long");
    loop {
        let asked = tokio::time::timeout(MODEL_TIMEOUT, whole(app, prompt.clone()));
        match asked.await.map_err(|_| slow())? {
            Err(failure) if missing(&failure) && prompt.model != *ours => {
                tracing::warn!(model = %prompt.model, "a model that a client named is not here");
                (prompt.model, prompt.sampling.effort) = (ours.clone(), None);
            }
            answer => return answer.map_err(failed),
        }
    }
}

async fn whole(app: &AppState, prompt: Prompt) -> Result<String, Failure> {
    let (mut stream, mut text) = (app.ports.models.stream(prompt), String::new());
    loop {
        for chunk in stream.next().await? {
            match chunk {
                Chunk::Output(Channel::Text, piece)
                    if text.len() + piece.len() > LONGEST_ANSWER =>
                {
                    return Ok(text);
                }
                Chunk::Output(Channel::Text, piece) => text.push_str(&piece),
                Chunk::Finished(_) => return Ok(text),
                Chunk::Output(Channel::Thought, _) | Chunk::Retrying { .. } => {}
            }
        }
    }
}

fn missing(failure: &Failure) -> bool {
    failure.kind == FailureKind::UnknownModel
}

/// What providers say is for the log: there may be more in it than is good for a client.
fn failed(failure: Failure) -> Reply {
    tracing::warn!(kind = failure.kind.name(), "a model could not be asked: {}", failure.message);
    Reply::new(502, format!("The model could not be asked: {}", failure.kind.name()))
}

#[cfg(test)]
mod tests;
