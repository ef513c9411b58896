//! Decodes requests for chat completions.

use quintet_kernel::model::{Constraints, Sampling};
use serde_json::Value;

use super::{Call, Generation, Message, Target, content, options};
use crate::openai::reply::Reply;
use crate::openai::wire::fields::Fields;

/// A request for a chat completion.
#[derive(Debug)]
pub(crate) struct ChatRequest {
    pub(crate) generation: Generation,
    /// True if the stream must end with token counts.
    pub(crate) include_usage: bool,
}

/// Decodes the body of a request. Fails with the reply if it is invalid or not supported.
pub(crate) fn decode(body: &Value) -> Result<ChatRequest, Reply> {
    let body = Fields::body(body)?;
    let model = body.required_text("model")?;
    if body.count("n")?.is_some_and(|n| n > 1) {
        return Err(Reply::unsupported(
            "n",
            "only one choice per request is supported: n must be 1",
        ));
    }
    if body.flag("logprobs")? == Some(true) {
        return Err(Reply::unsupported("logprobs", "log probabilities are not supported"));
    }
    if body.get("functions").is_some() {
        return Err(Reply::unsupported("functions", "functions are not supported; use tools"));
    }
    let messages = body.objects("messages")?.ok_or_else(|| Reply::missing("messages".into()))?;
    if messages.is_empty() {
        return Err(Reply::invalid_value("messages", "Invalid 'messages': the array is empty."));
    }
    let tools = options::tools(&body, true)?;
    let (may_call, tool_choice) = options::tool_choice(&body, &tools)?;
    let max_tokens = body.count("max_completion_tokens")?;
    let sampling = Sampling {
        max_tokens: max_tokens.or(body.count("max_tokens")?),
        temperature: body.number("temperature", 0.0, 2.0)?,
        effort: options::effort(&body, "reasoning_effort")?,
        constraints: Constraints {
            top_p: body.number("top_p", 0.0, 1.0)?,
            stop: options::stop(&body)?,
            tool_choice,
            format: options::format(body.object("response_format")?)?,
        }
        .unless_empty(),
    };
    let stream_options = body.object("stream_options")?;
    let include_usage = stream_options.map(|options| options.flag("include_usage")).transpose()?;
    let generation = Generation {
        target: Target::parse(model)?,
        model: model.into(),
        instructions: None,
        messages: messages.iter().map(message).collect::<Result<_, _>>()?,
        tools,
        may_call,
        sampling,
        workspace: options::workspace(&body)?,
        stream: body.flag("stream")?.unwrap_or(false),
    };
    Ok(ChatRequest { generation, include_usage: include_usage.flatten().unwrap_or(false) })
}

fn message(message: &Fields<'_>) -> Result<Message, Reply> {
    match message.required_text("role")? {
        "system" | "developer" => Ok(Message::System(content::named_text(message)?)),
        "user" => Ok(Message::User(content::named_parts(message)?)),
        "assistant" => {
            let calls = message.objects("tool_calls")?.unwrap_or_default();
            Ok(Message::Assistant {
                text: content::text(message, "content")?,
                calls: calls.iter().map(call).collect::<Result<_, _>>()?,
            })
        }
        "tool" => Ok(Message::Result {
            call: message.required_text("tool_call_id")?.into(),
            text: content::text(message, "content")?,
        }),
        other => {
            let why =
                format!("role must be system, developer, user, assistant or tool, not {other:?}");
            Err(Reply::invalid_value(message.param("role"), why))
        }
    }
}

fn call(call: &Fields<'_>) -> Result<Call, Reply> {
    let function = call.object("function")?;
    let function = function.ok_or_else(|| Reply::missing(call.param("function")))?;
    Ok(Call {
        id: call.required_text("id")?.into(),
        tool: function.required_text("name")?.into(),
        arguments: function.text("arguments")?.unwrap_or_default().into(),
    })
}
