//! The tools that a client provides: which are accepted, and why others are rejected.

use std::collections::HashSet;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::tool_schema;

/// The largest manifest, in bytes.
const MANIFEST_BYTES_LIMIT: usize = 512_000;
const TOOLS_LIMIT: usize = 64;
const NAME_LIMIT: usize = 96;
const DESCRIPTION_LIMIT: usize = 2000;
/// Names that a client's tools may not have.
const RESERVED: [&str; 3] = ["web_search", "grounded_mouse_action", "grounded_scroll_action"];

/// A validated manifest. Its serialized form is sent to the client.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Manifest {
    pub(crate) accepted: Vec<Accepted>,
    pub(crate) rejected: Vec<Rejected>,
}

/// An accepted tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Accepted {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The executor, in the client's words.
    pub(crate) execution_target: String,
    /// True if the daemon finds places on the screen for it.
    #[serde(rename = "argument_resolution", serialize_with = "argument_resolution")]
    pub(crate) grounded: bool,
    /// The schema as the client wrote it.
    pub(crate) schema: Value,
    /// The schema of the arguments.
    #[serde(skip)]
    pub(crate) parameters: Value,
    /// The schema of the arguments after places were found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) executable_schema: Option<Value>,
}

/// A rejected tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Rejected {
    pub(crate) name: String,
    pub(crate) reason: String,
}

impl Manifest {
    pub(crate) fn validate(manifest: &Value) -> Self {
        let mut result = Self::default();
        match entries(manifest) {
            Ok(tools) => result.take(tools),
            Err(reason) => result.reject("", reason),
        }
        result
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Accepted> {
        self.accepted.iter().find(|tool| tool.name == name)
    }

    fn take(&mut self, tools: &[Value]) {
        let mut seen = HashSet::new();
        for (n, tool) in tools.iter().enumerate() {
            match accept(tool, &mut seen) {
                Ok(accepted) => self.accepted.push(accepted),
                Err(reason) => {
                    let name = tool["name"].as_str().unwrap_or_default();
                    let numbered = format!("#{n}");
                    self.reject(if tool.is_object() { name } else { &numbered }, reason);
                }
            }
        }
    }

    fn reject(&mut self, name: &str, reason: String) {
        self.rejected.push(Rejected { name: name.into(), reason });
    }
}

/// The value of `argument_resolution`.
pub(crate) fn resolution(grounded: bool) -> &'static str {
    if grounded { "backend_grounding" } else { "passthrough" }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape that serde wants")]
fn argument_resolution<S: Serializer>(grounded: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(resolution(*grounded))
}

fn entries(manifest: &Value) -> Result<&[Value], String> {
    let reason = match &manifest["tools"] {
        _ if !manifest.is_object() => " must be an object",
        _ if manifest.to_string().len() > MANIFEST_BYTES_LIMIT => " exceeds size limit",
        Value::Array(tools) if tools.len() > TOOLS_LIMIT => " cannot exceed 64 tools",
        Value::Array(tools) => return Ok(tools),
        _ => ".tools must be a list",
    };
    Err(format!("client_tool_manifest{reason}"))
}

/// Accepts a tool, or returns the first thing that is wrong with it.
fn accept(tool: &Value, seen: &mut HashSet<String>) -> Result<Accepted, String> {
    if !tool.is_object() {
        return Err("tool entry must be an object".into());
    }
    let name = name(tool, seen)?;
    let description = description(tool)?;
    let execution_target = execution_target(tool)?;
    let grounded = match word(tool, "argument_resolution") {
        Ok(None | Some("passthrough")) => false,
        Ok(Some("backend_grounding")) => true,
        _ => return Err("invalid argument_resolution".into()),
    };
    let schema = &tool["schema"];
    if !schema.is_object() {
        return Err("schema must be an object".into());
    }
    let parameters =
        tool_schema::parameters(schema).map_err(|fault| format!("invalid schema: {fault}"))?;
    let executable_schema =
        Some(tool["executable_schema"].clone()).filter(|schema| !schema.is_null());
    if let Some(schema) = &executable_schema {
        tool_schema::parameters(schema)
            .map_err(|fault| format!("invalid executable_schema: {fault}"))?;
    }
    Ok(Accepted {
        name,
        description,
        execution_target,
        grounded,
        schema: schema.clone(),
        parameters,
        executable_schema,
    })
}

fn name(tool: &Value, seen: &mut HashSet<String>) -> Result<String, String> {
    let name = tool["name"].as_str().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let begins = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    let reason = match name {
        name if name.trim().is_empty() => "tool name is required",
        name if !begins || name.len() > NAME_LIMIT || !name.bytes().all(plain) => {
            "tool name does not match allowed pattern"
        }
        name if !seen.insert(name.into()) => "duplicate tool name",
        name if RESERVED.contains(&name) => "reserved backend tool names cannot be overridden",
        name => return Ok(name.into()),
    };
    Err(reason.into())
}

fn description(tool: &Value) -> Result<String, String> {
    let text = tool["description"].as_str().map(str::trim).unwrap_or_default();
    let reason = match text {
        "" => "description is required",
        text if text.chars().count() > DESCRIPTION_LIMIT => "description exceeds length limit",
        text => return Ok(text.into()),
    };
    Err(reason.into())
}

fn execution_target(tool: &Value) -> Result<String, String> {
    match word(tool, "execution_target") {
        Ok(None) => Ok("local_runtime".into()),
        Ok(Some(target @ ("local_runtime" | "sidecar"))) => Ok(target.into()),
        Ok(Some("backend")) => Err("client manifests cannot add backend tools".into()),
        _ => Err("invalid execution_target".into()),
    }
}

/// A text that may be missing. Fails if it has another type.
fn word<'a>(tool: &'a Value, name: &str) -> Result<Option<&'a str>, ()> {
    match &tool[name] {
        Value::Null => Ok(None),
        Value::String(word) => Ok(Some(word)),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests;
