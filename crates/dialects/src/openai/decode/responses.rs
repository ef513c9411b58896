//! Decodes requests for responses.

use quintet_kernel::model::{Constraints, Sampling};
use serde_json::{Map, Value, json};

use super::{Call, Generation, Message, Target, content, options};
use crate::openai::reply::Reply;
use crate::openai::wire::fields::Fields;

/// A request for a response.
#[derive(Debug)]
pub(crate) struct ResponseRequest {
    pub(crate) generation: Generation,
    /// The response that this one continues.
    pub(crate) previous: Option<String>,
    /// False if the response cannot be retrieved later.
    pub(crate) store: bool,
    /// True if the response continues without a client.
    pub(crate) background: bool,
    /// The fields of the request that the response repeats.
    pub(crate) echo: Map<String, Value>,
    /// The items of the input, with the content of files left out.
    pub(crate) input: Vec<Value>,
}

/// Decodes the body of a request. Fails with the reply if it is invalid or not supported.
pub(crate) fn decode(body: &Value) -> Result<ResponseRequest, Reply> {
    let body = Fields::body(body)?;
    let model = body.required_text("model")?;
    let input = items(&body)?;
    let inputs = input.iter().enumerate();
    let inputs = inputs.map(|(n, item)| Fields::inside(item, format!("input[{n}]")));
    let mut messages = Vec::new();
    for item in inputs {
        add(&item?, &mut messages)?;
    }
    if messages.is_empty() {
        return Err(Reply::invalid_value("input", "Invalid 'input': there is nothing to answer."));
    }
    if body.get("conversation").is_some() {
        let why = "conversation is not supported; use previous_response_id";
        return Err(Reply::unsupported("conversation", why));
    }
    let tools = options::tools(&body, false)?;
    let (may_call, tool_choice) = options::tool_choice(&body, &tools)?;
    let reasoning = body.object("reasoning")?;
    let effort = reasoning.map(|reasoning| options::effort(&reasoning, "effort")).transpose()?;
    let text = body.object("text")?;
    let format = text.map(|text| text.object("format")).transpose()?.flatten();
    let sampling = Sampling {
        max_tokens: body.count("max_output_tokens")?,
        temperature: body.number("temperature", 0.0, 2.0)?,
        effort: effort.flatten(),
        constraints: Constraints {
            top_p: body.number("top_p", 0.0, 1.0)?,
            stop: Vec::new(),
            tool_choice,
            format: options::format(format)?,
        }
        .unless_empty(),
    };
    let store = body.flag("store")?.unwrap_or(true);
    let background = body.flag("background")?.unwrap_or(false);
    if background && !store {
        let why = "a background response must be stored, or it could not be retrieved";
        return Err(Reply::unsupported("background", why));
    }
    let generation = Generation {
        target: Target::parse(model)?,
        model: model.into(),
        instructions: body.text("instructions")?.map(Into::into),
        messages,
        tools,
        may_call,
        sampling,
        workspace: options::workspace(&body)?,
        stream: body.flag("stream")?.unwrap_or(false),
    };
    Ok(ResponseRequest {
        generation,
        previous: body.text("previous_response_id")?.map(Into::into),
        store,
        background,
        echo: echo(&body),
        input: input.iter().enumerate().map(|(n, item)| listed_item(n, item)).collect(),
    })
}

/// The items of the input; a plain text is a message of the user.
fn items(body: &Fields<'_>) -> Result<Vec<Value>, Reply> {
    match body.get("input") {
        None => Err(Reply::missing("input".into())),
        Some(Value::String(text)) => Ok(vec![json!({ "role": "user", "content": text })]),
        Some(Value::Array(items)) => Ok(items.clone()),
        Some(other) => Err(Reply::invalid_type("input".into(), "a string or an array", other)),
    }
}

/// Adds an item to the conversation. A model's text and its calls are separate items, but one message.
fn add(item: &Fields<'_>, messages: &mut Vec<Message>) -> Result<(), Reply> {
    let kind = item.text("type")?.unwrap_or("message");
    match kind {
        "message" => messages.push(message(item)?),
        "function_call" => {
            let call = Call {
                id: item.required_text("call_id")?.into(),
                tool: item.required_text("name")?.into(),
                arguments: item.text("arguments")?.unwrap_or_default().into(),
            };
            match messages.last_mut() {
                Some(Message::Assistant { calls, .. }) => calls.push(call),
                _ => messages.push(Message::Assistant { text: String::new(), calls: vec![call] }),
            }
        }
        "function_call_output" => messages.push(Message::Result {
            call: item.required_text("call_id")?.into(),
            text: content::text(item, "output")?,
        }),
        // Reasoning is only useful for the model that wrote it.
        "reasoning" => {}
        other => {
            let why = format!("an item of type {other:?} is not supported");
            return Err(Reply::unsupported(item.param("type"), why));
        }
    }
    Ok(())
}

fn message(item: &Fields<'_>) -> Result<Message, Reply> {
    match item.required_text("role")? {
        "system" | "developer" => Ok(Message::System(content::text(item, "content")?)),
        "user" => Ok(Message::User(content::parts(item)?)),
        "assistant" => {
            let text = content::text(item, "content")?;
            Ok(Message::Assistant { text, calls: Vec::new() })
        }
        other => {
            let why = format!("role must be system, developer, user or assistant, not {other:?}");
            Err(Reply::invalid_value(item.param("role"), why))
        }
    }
}

/// The fields of a response that repeat its request.
fn echo(body: &Fields<'_>) -> Map<String, Value> {
    let or = |name: &str, default: Value| body.get(name).cloned().unwrap_or(default);
    let fields = [
        ("model", or("model", Value::Null)),
        ("instructions", or("instructions", Value::Null)),
        ("metadata", or("metadata", json!({}))),
        ("parallel_tool_calls", or("parallel_tool_calls", true.into())),
        ("temperature", or("temperature", json!(1.0))),
        ("top_p", or("top_p", json!(1.0))),
        ("tool_choice", or("tool_choice", "auto".into())),
        ("tools", or("tools", json!([]))),
        ("max_output_tokens", or("max_output_tokens", Value::Null)),
        ("previous_response_id", or("previous_response_id", Value::Null)),
        ("reasoning", or("reasoning", json!({ "effort": null, "summary": null }))),
        ("text", or("text", json!({ "format": { "type": "text" } }))),
        ("truncation", "disabled".into()),
        ("presence_penalty", json!(0.0)),
        ("frequency_penalty", json!(0.0)),
        ("top_logprobs", 0.into()),
        ("max_tool_calls", Value::Null),
        ("service_tier", "default".into()),
        ("prompt_cache_key", or("prompt_cache_key", Value::Null)),
        ("safety_identifier", or("safety_identifier", Value::Null)),
        ("user", or("user", Value::Null)),
        ("store", or("store", true.into())),
        ("background", or("background", false.into())),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An item of the input, for listing it later. The session has the content of files.
fn listed_item(n: usize, item: &Value) -> Value {
    let mut item = item.clone();
    if item.get("type").is_none() {
        item["type"] = "message".into();
    }
    if item.get("id").is_none() {
        item["id"] = format!("item_{n}").into();
    }
    if let Some(text) = item["content"].as_str() {
        let kind = if item["role"] == "assistant" { "output_text" } else { "input_text" };
        item["content"] = json!([{ "type": kind, "text": text }]);
    }
    for piece in item["content"].as_array_mut().into_iter().flatten() {
        for name in ["image_url", "file_data"] {
            if let Some(url) = piece[name].as_str().filter(|url| url.starts_with("data:")) {
                let end = url.find(',').unwrap_or(0);
                piece[name] = url[..end].into();
            }
        }
        if let Value::Object(piece) = piece {
            piece.retain(|_, value| !value.is_null());
        }
    }
    item
}
