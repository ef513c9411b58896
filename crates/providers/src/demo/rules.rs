//! The rules by which the demo model answers.

use std::sync::Arc;

use quintet_kernel::model::{Prompt, PromptMessage, PromptPart, RawToolCall};
use serde_json::{Value, json};

use super::DemoReply;

/// The highest number that the model counts to.
const COUNT_LIMIT: u64 = 10_000;
/// Bytes of a tool's result that are repeated.
const REPORT_LIMIT: usize = 4_000;

const WHAT_I_AM: &str = "I am Quintet's built-in demo, a handful of rules and no language model: \
    try `run: ls`, `read: README.md`, `count to 20` or `think: about tea`.";

/// The answer to a prompt.
pub(super) fn reply(prompt: &Prompt) -> DemoReply {
    match prompt.messages.last().map(|last| &**last) {
        Some(PromptMessage::Result { .. }) => text_reply(report(&prompt.messages)),
        _ => answer(&last_user_text(&prompt.messages), prompt),
    }
}

fn answer(asked: &str, prompt: &Prompt) -> DemoReply {
    if let Some(command) = after_word(asked, "run:").or_else(|| quoted_command(asked)) {
        return call(prompt, "shell", json!({ "command": command }), &format!("run `{command}`"));
    }
    if let Some(path) = after_word(asked, "read:") {
        return call(prompt, "read_file", json!({ "path": path }), &format!("read {path}"));
    }
    if let Some(highest) = count(asked) {
        let numbers: Vec<_> = (1..=highest).map(|n| n.to_string()).collect();
        return text_reply(numbers.join(" "));
    }
    if let Some(about) = after_word(asked, "think:") {
        let thought = format!("I am asked to think {about}. I have rules for a few words only.");
        let text = format!("I thought {about}, as far as rules can. {WHAT_I_AM}");
        return DemoReply { thought, text, calls: Vec::new() };
    }
    text_reply(format!("You said: {}\n\n{WHAT_I_AM}", asked.trim()))
}

fn text_reply(text: String) -> DemoReply {
    DemoReply { text, ..DemoReply::default() }
}

/// Calls a tool if it is offered.
fn call(prompt: &Prompt, tool: &str, input: Value, what: &str) -> DemoReply {
    if !prompt.tools.iter().any(|spec| spec.name == tool) {
        return text_reply(format!(
            "I would {what}, but the tool `{tool}` is not offered to me here."
        ));
    }
    let id = format!("demo_{}", prompt.messages.len());
    let call = RawToolCall { id, tool: tool.into(), arguments: input.to_string() };
    DemoReply { calls: vec![call], ..text_reply(format!("I will {what}.")) }
}

/// The results of the tools that were called last.
fn report(messages: &[Arc<PromptMessage>]) -> String {
    let results = messages.iter().rev().map_while(|message| match &**message {
        PromptMessage::Result { tool, text, ok, .. } => Some(sentence(tool, text, *ok)),
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Assistant { .. } => None,
    });
    let mut results: Vec<_> = results.collect();
    results.reverse();
    results.join("\n")
}

fn sentence(tool: &str, text: &str, ok: bool) -> String {
    let who = match tool {
        "shell" => "command",
        "read_file" => "file",
        _ => "tool",
    };
    let verb = match (ok, who) {
        (true, "file") => "says",
        (true, _) => "said",
        (false, "file") => "could not be read",
        (false, _) => "failed",
    };
    let printed = printed(text);
    let text = printed.as_deref().unwrap_or(text).trim_end();
    let end = text.floor_char_boundary(REPORT_LIMIT);
    let rest = if end < text.len() { " …" } else { "" };
    format!("The {who} {verb}: {}{rest}", &text[..end])
}

/// The output of a command, if a result is one.
fn printed(result: &str) -> Option<String> {
    let record: Value = serde_json::from_str(result).ok()?;
    let (stdout, stderr) = (record["stdout"].as_str()?, record["stderr"].as_str()?);
    Some(format!("{stdout}{stderr}"))
}

fn last_user_text(messages: &[Arc<PromptMessage>]) -> String {
    let last = messages.iter().rev().find_map(|message| match &**message {
        PromptMessage::User(parts) => Some(parts.as_slice()),
        PromptMessage::System(_)
        | PromptMessage::Assistant { .. }
        | PromptMessage::Result { .. } => None,
    });
    last.unwrap_or_default().iter().map(part_text).collect()
}

fn part_text(part: &PromptPart) -> &str {
    match part {
        PromptPart::Text(text) => text,
        PromptPart::Media { .. } => "",
    }
}

/// The rest of the first line that begins with a word.
fn after_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (head, rest) = line.trim().split_at_checked(word.len())?;
        let rest = rest.trim();
        (head.eq_ignore_ascii_case(word) && !rest.is_empty()).then_some(rest)
    })
}

/// The command in "please run `ls`".
fn quoted_command(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let start = lower.find("run `")? + "run `".len();
    let (command, _) = text.get(start..)?.split_once('`')?;
    (!command.trim().is_empty()).then_some(command)
}

fn count(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("count to ")?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    let highest: u64 = digits.parse().ok()?;
    (1..=COUNT_LIMIT).contains(&highest).then_some(highest)
}
