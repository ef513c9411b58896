//! Decodes tools and sampling options, in the formats of both endpoints.

use std::path::{Path, PathBuf};

use quintet_kernel::model::{Effort, OutputFormat, ToolChoice};
use serde_json::{Value, json};

use super::FunctionTool;
use crate::openai::reply::Reply;
use crate::openai::wire::fields::Fields;

/// The most tools of a request.
const TOOLS_LIMIT: usize = 128;

/// The client's tools. `nested` is true if each is in a field `function`.
pub(super) fn tools(body: &Fields<'_>, nested: bool) -> Result<Vec<FunctionTool>, Reply> {
    let tools = body.objects("tools")?.unwrap_or_default();
    if tools.len() > TOOLS_LIMIT {
        let why = format!("there are {} tools; at most {TOOLS_LIMIT} are supported", tools.len());
        return Err(Reply::invalid_value("tools", why));
    }
    tools.iter().map(|tool| function(tool, nested)).collect()
}

fn function(tool: &Fields<'_>, nested: bool) -> Result<FunctionTool, Reply> {
    let kind = tool.required_text("type")?;
    if kind != "function" {
        let why = format!("only tools of type \"function\" are supported, not {kind:?}");
        return Err(Reply::unsupported(tool.param("type"), why));
    }
    let inner;
    let function = if nested {
        inner = tool.object("function")?.ok_or_else(|| Reply::missing(tool.param("function")))?;
        &inner
    } else {
        tool
    };
    let name = function.required_text("name")?;
    let is_valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_valid) {
        let param = function.param("name");
        let why = format!("Invalid '{param}': 1 to 64 letters, digits, \"_\" or \"-\".");
        return Err(Reply::invalid_value(param, why));
    }
    let parameters =
        function.object("parameters")?.map(|schema| Value::Object(schema.raw().clone()));
    Ok(FunctionTool {
        name: name.into(),
        description: function.text("description")?.unwrap_or_default().into(),
        parameters: parameters.unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
        strict: function.flag("strict")?.unwrap_or(false),
    })
}

/// Whether tools may be called, and which one must be called.
pub(super) fn tool_choice(
    body: &Fields<'_>,
    tools: &[FunctionTool],
) -> Result<(bool, ToolChoice), Reply> {
    let named = |choice: &Fields<'_>| {
        let inner = choice.object("function")?;
        let name = inner.as_ref().unwrap_or(choice).required_text("name")?;
        if tools.iter().all(|tool| tool.name != name) {
            let why = format!("tool_choice names {name:?}, which is not among the tools");
            return Err(Reply::invalid_value("tool_choice", why));
        }
        Ok((true, ToolChoice::Named(name.into())))
    };
    match body.get("tool_choice") {
        None => Ok((true, ToolChoice::Auto)),
        Some(Value::String(choice)) => match choice.as_str() {
            "auto" => Ok((true, ToolChoice::Auto)),
            "none" => Ok((false, ToolChoice::Auto)),
            "required" => Ok((true, ToolChoice::Required)),
            other => {
                let why =
                    format!("tool_choice must be auto, none, required or a tool, not {other:?}");
                Err(Reply::invalid_value("tool_choice", why))
            }
        },
        Some(choice @ Value::Object(_)) => {
            let choice = Fields::inside(choice, "tool_choice".into())?;
            match choice.required_text("type")? {
                "function" => named(&choice),
                other => {
                    let why = format!("tool_choice of type {other:?} is not supported");
                    Err(Reply::unsupported("tool_choice", why))
                }
            }
        }
        Some(other) => {
            Err(Reply::invalid_type("tool_choice".into(), "a string or an object", other))
        }
    }
}

/// The reasoning effort.
pub(super) fn effort(fields: &Fields<'_>, name: &str) -> Result<Option<Effort>, Reply> {
    let Some(effort) = fields.text(name)? else { return Ok(None) };
    let unknown = || {
        let names = Effort::ALL.map(Effort::name).join(", ");
        Reply::invalid_value(fields.param(name), format!("must be one of {names}, not {effort:?}"))
    };
    Effort::parse(effort).map(Some).ok_or_else(unknown)
}

/// The output format: `format` itself, or its `json_schema`.
pub(super) fn format(format: Option<Fields<'_>>) -> Result<Option<OutputFormat>, Reply> {
    let Some(format) = format else { return Ok(None) };
    match format.required_text("type")? {
        "text" => Ok(None),
        "json_object" => Ok(Some(OutputFormat::Json)),
        "json_schema" => {
            let inner = format.object("json_schema")?;
            let named = inner.as_ref().unwrap_or(&format);
            let schema = named.object("schema")?;
            let schema = schema.ok_or_else(|| Reply::missing(named.param("schema")))?;
            Ok(Some(OutputFormat::Schema {
                name: named.required_text("name")?.into(),
                schema: Value::Object(schema.raw().clone()),
                strict: named.flag("strict")?.unwrap_or(false),
            }))
        }
        other => {
            let why = format!("a format of type {other:?} is not supported");
            Err(Reply::unsupported(format.param("type"), why))
        }
    }
}

/// The stop sequences.
pub(super) fn stop(body: &Fields<'_>) -> Result<Vec<String>, Reply> {
    match body.get("stop") {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(texts)) => {
            let text = |(n, text): (usize, &Value)| {
                let error = || Reply::invalid_type(format!("stop[{n}]"), "a string", text);
                text.as_str().map(str::to_owned).ok_or_else(error)
            };
            texts.iter().enumerate().map(text).collect()
        }
        Some(other) => Err(Reply::invalid_type("stop".into(), "a string or an array", other)),
    }
}

/// The agent's workspace, from `metadata.workspace`.
pub(super) fn workspace(body: &Fields<'_>) -> Result<Option<PathBuf>, Reply> {
    let Some(metadata) = body.object("metadata")? else { return Ok(None) };
    let Some(workspace) = metadata.text("workspace")? else { return Ok(None) };
    if !Path::new(workspace).is_absolute() || workspace.contains('\0') {
        let why = format!("metadata.workspace must be an absolute path, not {workspace:?}");
        return Err(Reply::invalid_value("metadata.workspace", why));
    }
    Ok(Some(workspace.into()))
}
