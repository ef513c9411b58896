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

/// The longest conversation or message, in characters.
const TEXT_CHARS_LIMIT: usize = 32_768;
const CONVERSATIONS_LIMIT: usize = 100;
const MODEL_LIMIT: usize = 256;
const PROVIDER_LIMIT: usize = 128;
const USER_LIMIT: usize = 256;
/// The longest answer of a model, in bytes; the rest is not read.
const ANSWER_LIMIT: usize = 16 * 1024 * 1024;
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
    let written = call_model(&app, model, SUMMARIZE, shown.join("\n\n")).await?;
    let (summary, facts) = summary(&written);
    Ok(Json(json!({ "summary": summary, "facts": facts, "success": true })))
}

/// `POST /api/semantic/title`.
pub(super) async fn name(Caller { app, user }: Caller, body: Body) -> JsonReply {
    let (shown, model) = body.read(|body| {
        check_user(body, user.as_ref());
        let query = body.needed_text("user_message", 0..=TEXT_CHARS_LIMIT);
        let answer = body.needed_text("assistant_message", 0..=TEXT_CHARS_LIMIT);
        let id = body.text("model_id", 0..=MODEL_LIMIT);
        let provider = body.text("model_provider", 0..=PROVIDER_LIMIT);
        let model = named(&app.settings.default_model, id.as_deref(), provider.as_deref());
        (format!("User:\n{query}\n\nAssistant:\n{answer}"), model)
    })?;
    let written = call_model(&app, model, NAME, shown).await?;
    Ok(Json(json!({ "title": title(&written), "success": true })))
}

/// `GET /api/semantic/health`.
pub(super) async fn health() -> Json<Value> {
    Json(json!({ "status": "healthy", "message": "Semantic summarization service ready" }))
}

/// Checks the user id of a body, which is optional if the request has a user.
fn check_user(body: &Object<'_>, user: Option<&User>) {
    let field = if user.is_some() { body.field("user_id") } else { body.needed("user_id") };
    let Some(name) = field.text(1..=USER_LIMIT) else { return };
    if name == "default_user" {
        body.wrong("user_id", "Value error, user_id cannot be default_user");
    } else if name.trim().is_empty() {
        body.wrong("user_id", "Value error, user_id cannot be blank");
    }
}

/// The model that a client names, or the default.
fn named(default: &ModelRef, id: Option<&str>, provider: Option<&str>) -> Choice {
    let given = |text: Option<&'_ str>| {
        text.map(str::trim).filter(|text| !text.is_empty()).map(String::from)
    };
    let provider = given(provider).unwrap_or_else(|| default.provider.clone());
    match given(id) {
        Some(id) => choice(&provider, &id),
        None => Choice { model: default.clone(), effort: None },
    }
}

/// Calls a model once, without tools. The default model replaces one that is not configured.
async fn call_model(
    app: &AppState,
    choice: Choice,
    system: &str,
    text: String,
) -> Result<String, Reply> {
    let default = &app.settings.default_model;
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
        let answer = tokio::time::timeout(MODEL_TIMEOUT, answer(app, prompt.clone()));
        match answer.await.map_err(|_| slow())? {
            Err(Failure { kind: FailureKind::UnknownModel, .. }) if prompt.model != *default => {
                tracing::warn!(model = %prompt.model, "a model that a client named is not configured");
                (prompt.model, prompt.sampling.effort) = (default.clone(), None);
            }
            answer => return answer.map_err(failed),
        }
    }
}

async fn answer(app: &AppState, prompt: Prompt) -> Result<String, Failure> {
    let (mut stream, mut text) = (app.ports.models.stream(prompt), String::new());
    loop {
        for chunk in stream.next().await? {
            match chunk {
                Chunk::Output(Channel::Text, piece) if text.len() + piece.len() > ANSWER_LIMIT => {
                    return Ok(text);
                }
                Chunk::Output(Channel::Text, piece) => text.push_str(&piece),
                Chunk::Finished(_) => return Ok(text),
                Chunk::Output(Channel::Thought, _) | Chunk::Retrying { .. } => {}
            }
        }
    }
}

/// The answer to a failed model call. The provider's text is only logged, because it may contain secrets.
fn failed(failure: Failure) -> Reply {
    tracing::warn!(kind = failure.kind.name(), "a model call failed: {}", failure.message);
    Reply::new(502, format!("The model could not be asked: {}", failure.kind.name()))
}

#[cfg(test)]
mod tests;
