//! Previews for developers of agents: models, tools, and exactly what a model would be sent.

use axum::Json;
use axum::http::Uri;
use quintet_kernel::model::{Prompt, PromptMessage, assistant_calls, assistant_text};
use quintet_kernel::port::Error;
use quintet_kernel::prompt;
use serde_json::{Value, json};

use super::preview_request::{Overrides, PreviewRequest};
use super::reply::Reply;
use super::{Body, Caller, JsonReply};
use crate::windie::agent::builtin_tools;
use crate::windie::agent::turn_setup::{Agent, Scene};
use crate::windie::encode::history::text;
use crate::windie::encode::prompt_disclosure;
use crate::windie::wire::models;

/// The query of previews that have none; it is removed from the prompt again.
const PLACEHOLDER: &str = "hello";

/// `GET /api/sdk/models`.
pub(super) async fn models(by: Caller, overrides: Overrides) -> JsonReply {
    let settings = overrides.settings(&by).await?;
    let known = by.app.ports.models.list().await;
    Ok(Json(json!({
        "config": settings.snapshot(&by.app.settings.default_model),
        "models": models::listed(&known, &settings),
    })))
}

/// `GET /api/sdk/tool-schemas`.
pub(super) async fn tool_schemas(by: Caller, overrides: Overrides) -> JsonReply {
    let request = PreviewRequest::alone(overrides);
    let preview = Preview::new(&by, &request).await?;
    Ok(Json(json!({
        "config": preview.config,
        "canonical_tool_schemas": preview.canonical_tools(&request.agent),
        "provider_tool_schemas": preview.tools(),
    })))
}

/// `GET /api/sdk/tool-capabilities/{tool_name}`.
pub(super) async fn tool(by: Caller, overrides: Overrides, uri: Uri) -> JsonReply {
    let name = uri.path().split('/').nth(4).unwrap_or_default();
    let preview = Preview::new(&by, &PreviewRequest::alone(overrides)).await?;
    let offered = preview.prompt.tools.iter().find(|tool| tool.name == name);
    let own = || Some(builtin_tools::daemon_capabilities(name, &offered?.description));
    let capabilities = builtin_tools::capabilities(name).or_else(own);
    let capabilities = capabilities.ok_or_else(|| Reply::new(404, "Tool not found"))?;
    let offered = offered.map(|tool| builtin_tools::flat(tool));
    let built_in = builtin_tools::tool(name).map(builtin_tools::BuiltIn::canonical);
    Ok(Json(json!({
        "config": preview.config,
        "tool_name": name,
        "capability": capabilities,
        "canonical_tool_schema": built_in.as_ref().or(offered.as_ref()),
        "provider_tool_schema": offered,
    })))
}

/// `GET /api/sdk/system-prompt`.
pub(super) async fn system_prompt(by: Caller, overrides: Overrides) -> JsonReply {
    let preview = Preview::new(&by, &PreviewRequest::alone(overrides)).await?;
    Ok(Json(json!({ "config": preview.config, "system_prompt": preview.prompt.system })))
}

/// `POST /api/sdk/prompt-preview`.
pub(super) async fn preview(by: Caller, body: Body) -> JsonReply {
    let request = body.read(PreviewRequest::of)?;
    Ok(Json(Preview::new(&by, &request).await?.payload(&request)))
}

/// `POST /api/sdk/query-plan`.
pub(super) async fn query_plan(by: Caller, body: Body) -> JsonReply {
    let request = body.read(PreviewRequest::of)?;
    let preview = Preview::new(&by, &request).await?;
    let mut plan = preview.payload(&request);
    plan["query_message"] = request.message();
    plan["transparency_events"] = preview.events(&request).into();
    Ok(Json(plan))
}

/// The prompt that a model would be sent.
struct Preview {
    config: Value,
    tokens: u64,
    prompt: Prompt,
}

impl Preview {
    async fn new(by: &Caller, request: &PreviewRequest) -> Result<Self, Reply> {
        let app = &by.app;
        let settings = request.overrides.settings(by).await?;
        let user = request.overrides.user(by.user.as_ref())?.unwrap_or_else(|| "preview".into());
        let before = request.before.clone();
        let scene = Scene { user: &user, agent: &request.agent, settings: &settings, before };
        let mut query = request.query.clone();
        if query.text.is_empty() {
            query.text = PLACEHOLDER.into();
        }
        let state = app.dry_run(scene, &query).await.map_err(refused)?;
        let tokens = prompt::count_prompt_tokens(&state, &*app.ports.models).total().tokens;
        let mut prompt = prompt::assemble(&state);
        if request.query.text.is_empty() {
            prompt.messages.pop();
        }
        Ok(Self { config: settings.snapshot(&app.settings.default_model), tokens, prompt })
    }

    /// The tools in the prompt.
    fn tools(&self) -> Vec<Value> {
        self.prompt.tools.iter().map(|tool| builtin_tools::flat(tool)).collect()
    }

    /// All built-in tools and those of the client, and the daemon's own tools in the prompt.
    fn canonical_tools(&self, agent: &Agent) -> Vec<Value> {
        let built_in = builtin_tools::tools().iter().map(builtin_tools::BuiltIn::canonical);
        let provided = agent.manifest.iter().flat_map(|manifest| &manifest.accepted);
        let provided = provided
            .map(|tool| builtin_tools::function(&tool.name, &tool.description, &tool.parameters));
        let mut tools: Vec<Value> = built_in.chain(provided).collect();
        for own in self.tools() {
            if tools.iter().all(|tool| tool["name"] != own["name"]) {
                tools.push(own);
            }
        }
        tools
    }

    fn payload(&self, request: &PreviewRequest) -> Value {
        let (canonical, projected) = if request.include_tools {
            (self.canonical_tools(&request.agent), self.tools())
        } else {
            Default::default()
        };
        let messages: Vec<Value> = self.prompt.messages.iter().map(|one| message(one)).collect();
        json!({
            "config": self.config,
            "system_prompt": self.prompt.system,
            "prompt_messages": messages,
            "canonical_tool_schemas": canonical,
            "provider_tool_schemas": projected,
            "user_message_full": self.user_message(request),
            "prompt_token_count": self.tokens,
            "token_count_error": null,
        })
    }

    /// The query with its context, if it has any.
    fn user_message(&self, request: &PreviewRequest) -> Option<Value> {
        prompt_disclosure::between(request.query.content.as_deref()?, "user_query")?;
        let [_, (_, full), _] = prompt_disclosure::of_turn(&self.prompt, &request.query.text);
        Some(full)
    }

    /// The events that a client would be sent before the model answers.
    fn events(&self, request: &PreviewRequest) -> Vec<Value> {
        let events = prompt_disclosure::of_turn(&self.prompt, &request.query.text).into_iter();
        let wanted = events.filter(|(kind, _)| match *kind {
            "user-message-full" => !request.query.text.is_empty(),
            "tool-schemas" => request.include_tools,
            _ => true,
        });
        wanted.map(|(kind, payload)| json!({ "type": kind, "payload": payload })).collect()
    }
}

/// A message of the prompt.
fn message(message: &PromptMessage) -> Value {
    match message {
        PromptMessage::System(text) => json!({ "role": "system", "content": text }),
        PromptMessage::User(parts) => json!({ "role": "user", "content": text(parts) }),
        PromptMessage::Assistant { parts, .. } => {
            let calls = assistant_calls(parts).map(|call| {
                json!({ "id": call.call.as_str(), "name": call.tool, "arguments": call.input })
            });
            let calls: Vec<Value> = calls.collect();
            let mut shown = json!({ "role": "assistant", "content": assistant_text(parts) });
            if !calls.is_empty() {
                shown["tool_calls"] = calls.into();
            }
            shown
        }
        PromptMessage::Result { call, tool, text, .. } => json!({
            "role": "tool",
            "tool_call_id": call.as_str(),
            "name": tool,
            "content": text,
        }),
    }
}

fn refused(error: Error) -> Reply {
    match error {
        Error::Refused(refusal) => Reply::new(400, refusal.to_string()),
        Error::Closing | Error::ReadOnly => Reply::new(503, "The daemon is shutting down"),
        Error::NotFound(_) | Error::Ahead(..) => Reply::internal(),
        Error::Storage(error) => error.into(),
    }
}
