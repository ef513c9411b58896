//! The grammar that the engine enforces on an answer: text or a call, and the arguments of the call's tool.
//!
//! The notation is GBNF of llama.cpp. A call that does not match the schema cannot be written; the content of its
//! strings is free.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::tool::ToolSpec;
use serde_json::Value;

use crate::chat::offer::{self, ANSWER};

/// The allowed forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Text or a call.
    Either,
    /// A call.
    Call,
    /// A call, one of which is a plain answer.
    CallOrAnswer,
    /// Text.
    Words,
    /// Code in a fence, and nothing else.
    Code,
}

const STRING: &str = r#"string ::= "\"" ( [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" hex hex hex hex ) )* "\""
hex ::= [0-9a-fA-F]
number ::= "-"? [0-9]+ ( "." [0-9]+ )?
boolean ::= "true" | "false"
value ::= string | number | boolean | "null" | array | object
array ::= "[" ( value ( ", " value )* )? "]"
object ::= "{" ( string ": " value ( ", " string ": " value )* )? "}"
"#;

/// Text that does not begin like code or JSON and contains no call.
const WORDS: &str = r#"words ::= [^<{`] rest*
rest ::= [^<] | "<" [^t] | "<t" [^o] | "<to" [^o] | "<too" [^l]
"#;

/// Lines of code, none of which begins like the end of the fence.
const CODE: &str = r#"root ::= "```" [a-z]* "\n" line+ "```"
line ::= ( [^`\n] [^\n]* )? "\n"
"#;

/// The grammar for these tools.
pub(crate) fn grammar(tools: &[Arc<ToolSpec>], choice: Choice) -> String {
    let root = match choice {
        Choice::Words => return format!("root ::= words\n{WORDS}"),
        Choice::Code => return CODE.into(),
        Choice::Call | Choice::CallOrAnswer => "call",
        Choice::Either => "call | words call?",
    };
    let mut calls: Vec<String> = tools.iter().map(|tool| arguments(tool)).collect();
    if choice != Choice::Call {
        calls.push(format!("{} string \"}}\"", literal(&begin(ANSWER, "text"))));
    }
    let mut text = format!("root ::= {root}\n{WORDS}{STRING}");
    let _ = writeln!(
        text,
        "call ::= {} ( {} ) {}",
        literal("<tool_call>\n{\"name\": \""),
        calls.join(" | "),
        literal("}\n</tool_call>"),
    );
    text
}

/// The name of a tool and its arguments, in the order of its description.
fn arguments(tool: &ToolSpec) -> String {
    let schema = offer::short_schema(&tool.schema);
    let named = schema.as_object().into_iter().flatten();
    let mut arguments: Vec<(&str, &str)> =
        named.map(|(name, kind)| (name.as_str(), rule(kind))).collect();
    // The last argument of a change must be the new text, whatever the alphabetical order.
    arguments.sort_by_key(|(name, _)| ORDER.iter().position(|known| known == name));
    let Some(((first, kind), rest)) = arguments.split_first() else {
        return format!("{} \"}}\"", literal(&format!("{}\", \"arguments\": {{", tool.name)));
    };
    let mut text = format!("{} {kind}", literal(&begin(&tool.name, first)));
    for (name, kind) in rest {
        let _ = write!(text, " {} {kind}", literal(&format!(", \"{name}\": ")));
    }
    text.push_str(" \"}\"");
    text
}

/// Arguments in an order that helps a model that writes from left to right.
const ORDER: [&str; 5] = ["path", "old", "new", "content", "text"];

fn begin(tool: &str, argument: &str) -> String {
    format!("{tool}\", \"arguments\": {{\"{argument}\": ")
}

fn rule(kind: &Value) -> &'static str {
    match kind.as_str() {
        Some("string") => "string",
        Some("integer" | "number") => "number",
        Some("boolean") => "boolean",
        Some("array") => "array",
        Some("object") => "object",
        Some(_) | None => "value",
    }
}

fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;
