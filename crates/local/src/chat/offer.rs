//! Describes the tools to a model.
//!
//! The model reads the description before its first answer, at some dozens of tokens per second, so it is short.

use std::sync::Arc;

use quintet_kernel::tool::ToolSpec;
use serde_json::{Map, Value};

use super::spaced::spaced;

/// The tool that a small model calls to answer with text. With tools in the prompt it always calls one, so it
/// gets one for plain answers.
pub(super) const ANSWER: &str = "answer";
pub(super) const ANSWER_SIGNATURE: &str = "{\"name\": \"answer\", \"description\": \"Talk to the user: greet, \
explain, answer from general knowledge\", \"parameters\": {\"text\": \"string\"}}";
/// Maximum number of optional arguments that are listed for a tool without required ones.
const OPTIONAL_ARGUMENTS_LIMIT: usize = 2;

/// The part of the system prompt about tools, in the format of the training data.
pub(super) fn offer(tools: &[Arc<ToolSpec>]) -> String {
    let specs = tools.iter().map(|spec| signature(spec)).chain([ANSWER_SIGNATURE.into()]);
    let specs: Vec<String> = specs.collect();
    format!(
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n\
         You are provided with function signatures within <tools></tools> XML tags:\n\
         <tools>\n{}\n</tools>\n\n\
         For each function call, return a json object with function name and arguments within \
         <tool_call></tool_call> XML tags:\n\
         <tool_call>\n{{\"name\": <function-name>, \"arguments\": <args-json-object>}}\n</tool_call>\n\n\
         Do what the user asks by calling functions, do not only describe it.",
        specs.join("\n")
    )
}

pub(super) fn signature(spec: &ToolSpec) -> String {
    format!(
        "{{\"name\": {}, \"description\": {}, \"parameters\": {}}}",
        spaced(&spec.name.as_str().into()),
        spaced(&first_sentence(&spec.description).into()),
        spaced(&short_schema(&spec.schema)),
    )
}

/// The first sentence of a description, without its additions.
fn first_sentence(text: &str) -> &str {
    let ends = [". ", ": ", "; ", ", "].iter().filter_map(|mark| text.find(mark));
    text[..ends.min().unwrap_or(text.len())].trim_end_matches('.')
}

/// The arguments and their types: the required ones or, if there are none, a few optional ones.
/// Tools report invalid values themselves.
pub(super) fn short_schema(schema: &Value) -> Value {
    let none = Map::new();
    let all = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let offered = all.iter().filter(|(name, _)| {
        if required.is_empty() {
            all.len() <= OPTIONAL_ARGUMENTS_LIMIT
        } else {
            required.iter().any(|needed| needed == name.as_str())
        }
    });
    offered.map(|(name, value)| (name.clone(), value["type"].clone())).collect()
}
