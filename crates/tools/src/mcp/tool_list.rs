//! The tools that a server lists, each checked by itself: a bad one never hides the others.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schema::Schema;

/// How many tools of one server are taken.
pub(super) const TOOLS_LIMIT: usize = 1000;
/// How long a schema may be, as JSON.
const SCHEMA_LIMIT: usize = 64 * 1024;
/// How deep a schema may be; providers and the journal take no more.
const DEPTH_LIMIT: usize = 48;
/// How long a description may be.
const DESCRIPTION_LIMIT: usize = 8 * 1024;
/// How long a tool's own name may be.
const NAME_LIMIT: usize = 256;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ListedTool {
    /// The server's own name for it.
    pub(super) name: String,
    pub(super) description: String,
    /// JSON Schema of an object, without references.
    pub(super) schema: Value,
}

/// The usable tools of a list, and what is wrong with the others.
pub(super) fn read(tools: Vec<Value>) -> (Vec<ListedTool>, Vec<String>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for (n, tool) in tools.into_iter().enumerate() {
        if n == TOOLS_LIMIT {
            bad.push(format!("only the first {TOOLS_LIMIT} tools are taken"));
            break;
        }
        let shown = tool["name"].as_str().unwrap_or("a tool without a name").to_owned();
        match read_one(tool) {
            Ok(tool) if seen.insert(tool.name.clone()) => good.push(tool),
            Ok(tool) => bad.push(format!("{} is listed twice", tool.name)),
            Err(why) => bad.push(format!("{shown:.80}: {why}")),
        }
    }
    good.sort_by(|one, two| one.name.cmp(&two.name));
    (good, bad)
}

fn read_one(mut tool: Value) -> Result<ListedTool, String> {
    let name = tool["name"].as_str().filter(|name| !name.is_empty()).ok_or("has no name")?;
    if name.len() > NAME_LIMIT {
        return Err(format!("its name is longer than {NAME_LIMIT} bytes"));
    }
    let name = name.to_owned();
    let words = [&tool["description"], &tool["title"], &tool["annotations"]["title"]];
    let text = words.into_iter().filter_map(Value::as_str).find(|text| !text.trim().is_empty());
    let text = text.unwrap_or_default();
    let description = text[..text.floor_char_boundary(DESCRIPTION_LIMIT)].to_owned();
    let schema = schema(tool["inputSchema"].take())?;
    Ok(ListedTool { name, description, schema })
}

/// The schema of a tool as every provider takes it: of an object, with properties, without references.
fn schema(source: Value) -> Result<Value, String> {
    if source.is_null() {
        return Err("has no inputSchema".to_owned());
    }
    if source.to_string().len() > SCHEMA_LIMIT {
        return Err(format!("its inputSchema is longer than {} KiB", SCHEMA_LIMIT / 1024));
    }
    let inlined =
        Inliner { root: &source, left: SCHEMA_LIMIT, open: Vec::new() }.value(&source, 0)?;
    let Value::Object(mut schema) = inlined else {
        return Err("its inputSchema is not an object".to_owned());
    };
    for name in ["$schema", "$id", "$defs", "definitions"] {
        schema.remove(name);
    }
    match schema.get("type") {
        None => drop(schema.insert("type".to_owned(), json!("object"))),
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("its inputSchema is of type {other}, not object")),
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if !properties.is_object() {
        return Err("the properties of its inputSchema are not an object".to_owned());
    }
    let schema = Value::Object(schema);
    Schema::new(&schema).map_err(|why| format!("its inputSchema is none: {why:.200}"))?;
    Ok(schema)
}

/// Replaces references by what they lead to; many providers refuse them.
struct Inliner<'a> {
    root: &'a Value,
    /// How many bytes may still come of it: references of references can grow without bound.
    left: usize,
    /// The references that are being replaced.
    open: Vec<String>,
}

impl Inliner<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_LIMIT {
            return Err("its inputSchema is nested too deeply".to_owned());
        }
        Ok(match value {
            Value::Object(fields) => self.object(fields, depth)?,
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, depth + 1));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let size = value.as_str().map_or(8, str::len);
                self.spend(size)?;
                value.clone()
            }
        })
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) -> Result<Value, String> {
        let mut made = Map::new();
        if let Some(Value::String(reference)) = fields.get("$ref") {
            let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
            let target = target.ok_or_else(|| format!("{reference} leads nowhere"))?;
            // What refers to itself is cut: there any value fits, and the server checks it.
            if !self.open.contains(reference) {
                self.open.push(reference.clone());
                if let Value::Object(target) = self.value(target, depth + 1)? {
                    made = target;
                }
                self.open.pop();
            }
        }
        for (name, value) in fields.iter().filter(|(name, _)| *name != "$ref") {
            // Definitions stand where they are used; nothing else refers to them any more.
            if depth == 0 && (name == "$defs" || name == "definitions") {
                continue;
            }
            self.spend(name.len() + 1)?;
            made.insert(name.clone(), self.value(value, depth + 1)?);
        }
        Ok(Value::Object(made))
    }

    fn spend(&mut self, size: usize) -> Result<(), String> {
        self.left = self.left.checked_sub(size).ok_or("its inputSchema is too large")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
