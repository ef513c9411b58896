//! What the daemon would do, for those who build agents: its models, its tools, and exactly what a
//! model would be sent.

use axum::extract::Request;
use axum::response::Response;
use quintet_kernel::model::{Prompt, PromptMessage, PromptPart, assistant_calls, assistant_text};
use quintet_kernel::port::Error;
use quintet_kernel::prompt;
use serde_json::{Value, json};

use super::asked::{Overrides, PreviewRequest};
use super::body;
use super::reply::{Reply, ok};
use crate::windie::agent::builtin_tools;
use crate::windie::agent::dry_run::Scene;
use crate::windie::agent::turn_setup::Agent;
use crate::windie::auth::User;
use crate::windie::encode::prompt_disclosure;
use crate::windie::serve::AppState;
use crate::windie::wire::models;

/// What is asked where only the surroundings of a question are wanted.
const ANYTHING: &str = "hello";

/// `GET /api/sdk/models`.
pub(super) async fn models(
    app: &AppState,
    user: Option<&User>,
    query: &str,
) -> Result<Response, Reply> {
    let overrides = Overrides::of_query(query)?;
    let settings = overrides.settings(app, user).await?;
    let known = app.ports.models.list().await;
    Ok(ok(&json!({
        "config": settings.snapshot(&app.settings.default_model),
        "models": models::listed(&known, &settings),
    })))
}

/// `GET /api/sdk/tool-schemas`.
pub(super) async fn tool_schemas(
    app: &AppState,
    user: Option<&User>,
    query: &str,
) -> Result<Response, Reply> {
    let asked = PreviewRequest::alone(Overrides::of_query(query)?);
    let shown = Shown::new(app, user, &asked).await?;
    Ok(ok(&json!({
        "config": shown.config,
        "canonical_tool_schemas": canonical(&asked.agent),
        "provider_tool_schemas": shown.tools(),
    })))
}

/// `GET /api/sdk/tool-capabilities/{tool_name}`.
pub(super) async fn tool(
    app: &AppState,
    user: Option<&User>,
    (name, query): (&str, &str),
) -> Result<Response, Reply> {
    let asked = PreviewRequest::alone(Overrides::of_query(query)?);
    let capabilities =
        builtin_tools::capabilities(name).ok_or_else(|| Reply::new(404, "Tool not found"))?;
    let shown = Shown::new(app, user, &asked).await?;
    Ok(ok(&json!({
        "config": shown.config,
        "tool_name": name,
        "capability": capabilities,
        "canonical_tool_schema": builtin_tools::tool(name).map(builtin_tools::BuiltIn::canonical),
        "provider_tool_schema": shown.tools().iter().find(|tool| tool["name"] == name),
    })))
}

/// `GET /api/sdk/system-prompt`.
pub(super) async fn system_prompt(
    app: &AppState,
    user: Option<&User>,
    query: &str,
) -> Result<Response, Reply> {
    let asked = PreviewRequest::alone(Overrides::of_query(query)?);
    let shown = Shown::new(app, user, &asked).await?;
    Ok(ok(&json!({ "config": shown.config, "system_prompt": shown.prompt.system })))
}

/// `POST /api/sdk/prompt-preview`.
pub(super) async fn preview(
    app: &AppState,
    user: Option<&User>,
    request: Request,
) -> Result<Response, Reply> {
    let asked = PreviewRequest::read(body(request).await?)?;
    let shown = Shown::new(app, user, &asked).await?;
    Ok(ok(&shown.preview(&asked)))
}

/// `POST /api/sdk/query-plan`.
pub(super) async fn query_plan(
    app: &AppState,
    user: Option<&User>,
    request: Request,
) -> Result<Response, Reply> {
    let asked = PreviewRequest::read(body(request).await?)?;
    let shown = Shown::new(app, user, &asked).await?;
    let mut plan = shown.preview(&asked);
    plan["query_message"] = asked.message();
    plan["transparency_events"] = shown.events(&asked).into();
    Ok(ok(&plan))
}

/// What a model would be sent.
struct Shown {
    config: Value,
    tokens: u64,
    prompt: Prompt,
}

impl Shown {
    async fn new(
        app: &AppState,
        user: Option<&User>,
        asked: &PreviewRequest,
    ) -> Result<Self, Reply> {
        let settings = asked.overrides.settings(app, user).await?;
        let whose = asked.overrides.whose(user)?.unwrap_or_else(|| "preview".into());
        let before = asked.before.clone();
        let scene = Scene { user: &whose, agent: &asked.agent, settings: &settings, before };
        let mut query = asked.query.clone();
        if query.text.is_empty() {
            query.text = ANYTHING.into();
        }
        let state = app.dry_run(scene, &query).await.map_err(refused)?;
        let tokens = prompt::count_prompt_tokens(&state, &*app.ports.models).total().tokens;
        let mut prompt = prompt::assemble(&state);
        if asked.query.text.is_empty() {
            prompt.messages.pop();
        }
        Ok(Self { config: settings.snapshot(&app.settings.default_model), tokens, prompt })
    }

    /// The tools as the model is offered them.
    fn tools(&self) -> Vec<Value> {
        self.prompt.tools.iter().map(|tool| builtin_tools::flat(tool)).collect()
    }

    fn preview(&self, asked: &PreviewRequest) -> Value {
        let (canonical, projected) = if asked.include_tools {
            (canonical(&asked.agent), self.tools())
        } else {
            Default::default()
        };
        let messages: Vec<Value> =
            self.prompt.messages.iter().flat_map(|one| message(one)).collect();
        json!({
            "config": self.config,
            "system_prompt": self.prompt.system,
            "prompt_messages": messages,
            "canonical_tool_schemas": canonical,
            "provider_tool_schemas": projected,
            "user_message_full": self.user_message(asked),
            "prompt_token_count": self.tokens,
            "token_count_error": null,
        })
    }

    /// The question with everything around it, where there is something around it.
    fn user_message(&self, asked: &PreviewRequest) -> Option<Value> {
        prompt_disclosure::between(asked.query.content.as_deref()?, "user_query")?;
        let [_, (_, full), _] = prompt_disclosure::of_turn(&self.prompt, &asked.query.text);
        Some(full)
    }

    /// What a client is told before the model answers.
    fn events(&self, asked: &PreviewRequest) -> Vec<Value> {
        let events = prompt_disclosure::of_turn(&self.prompt, &asked.query.text).into_iter();
        let wanted = events.filter(|(kind, _)| match *kind {
            "user-message-full" => !asked.query.text.is_empty(),
            "tool-schemas" => asked.include_tools,
            _ => true,
        });
        wanted.map(|(kind, payload)| json!({ "type": kind, "payload": payload })).collect()
    }
}

/// The tools that there are, before anybody chose among them.
fn canonical(agent: &Agent) -> Vec<Value> {
    let built_in = builtin_tools::tools().iter().map(builtin_tools::BuiltIn::canonical);
    let brought = agent.manifest.iter().flat_map(|manifest| &manifest.accepted);
    let brought = brought.map(|tool| {
        json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        })
    });
    built_in.chain(brought).collect()
}

/// A message as models are sent it.
fn message(message: &PromptMessage) -> Option<Value> {
    match message {
        PromptMessage::System(text) => Some(json!({ "role": "system", "content": text })),
        PromptMessage::User(parts) => Some(json!({ "role": "user", "content": text(parts) })),
        PromptMessage::Assistant { parts, .. } => {
            let calls = assistant_calls(parts).map(|call| {
                json!({ "id": call.call.as_str(), "name": call.tool, "arguments": call.input })
            });
            let calls: Vec<Value> = calls.collect();
            let mut shown = json!({ "role": "assistant", "content": assistant_text(parts) });
            if !calls.is_empty() {
                shown["tool_calls"] = calls.into();
            }
            Some(shown)
        }
        PromptMessage::Result { call, tool, text, .. } => Some(json!({
            "role": "tool",
            "tool_call_id": call.as_str(),
            "name": tool,
            "content": text,
        })),
    }
}

fn text(parts: &[PromptPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        PromptPart::Text(text) => Some(text.as_str()),
        PromptPart::Media { .. } => None,
    });
    texts.collect()
}

fn refused(error: Error) -> Reply {
    match error {
        Error::Refused(refusal) => Reply::new(400, refusal.to_string()),
        Error::Closing | Error::ReadOnly => Reply::new(503, "The daemon is shutting down"),
        Error::NotFound(_) | Error::Ahead(..) => Reply::new(500, "Internal server error"),
        Error::Storage(error) => error.into(),
    }
}
