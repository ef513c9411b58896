//! Splits a client's conversation for a session: instructions, history, and the message to answer.

use quintet_kernel::CallId;
use quintet_kernel::command::ImportedMessage;
use quintet_kernel::message::{self, Role};
use quintet_kernel::tool::Risk;
use quintet_kernel::toolset::ClientTool;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::content::Part;
use super::{Call, FunctionTool, Message};
use crate::openai::reply::Reply;

/// The name of this front end; only its clients run the tools of requests.
pub(crate) const FRONT_END: &str = "openai";

/// The parts of a conversation.
#[derive(Debug, PartialEq)]
pub(crate) struct Conversation {
    /// Instructions among the messages.
    pub(crate) instructions: Vec<String>,
    /// The messages before the one to answer.
    pub(crate) earlier: Vec<Message>,
    /// The input to answer.
    pub(crate) asked: NewInput,
}

/// The input to answer.
#[derive(Debug, PartialEq)]
pub(crate) enum NewInput {
    /// A message of the user.
    User(Vec<Part>),
    /// The results of the last calls, by their ids.
    Results(Vec<CallResult>),
}

/// The result of a call that the client ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallResult {
    pub(crate) call: String,
    pub(crate) text: String,
}

impl Conversation {
    /// Splits a conversation. Fails if it has no message to answer.
    pub(crate) fn of(messages: Vec<Message>) -> Result<Self, Reply> {
        let (mut instructions, mut earlier) = (Vec::new(), Vec::new());
        for message in messages {
            match message {
                Message::System(text) => instructions.push(text),
                other => earlier.push(other),
            }
        }
        let is_result = |message: &Message| matches!(message, Message::Result { .. });
        let results = earlier.iter().rev().take_while(|message| is_result(message)).count();
        if results > 0 {
            let results = earlier.split_off(earlier.len() - results);
            let results = results.into_iter().filter_map(|message| match message {
                Message::Result { call, text } => Some(CallResult { call, text }),
                Message::System(_) | Message::User(_) | Message::Assistant { .. } => None,
            });
            let asked = NewInput::Results(results.collect());
            return Ok(Self { instructions, earlier, asked });
        }
        match earlier.pop() {
            Some(Message::User(parts)) => {
                Ok(Self { instructions, earlier, asked: NewInput::User(parts) })
            }
            Some(_) | None => {
                let why = "the last message must be from the user or a tool";
                Err(Reply::invalid(why).code("invalid_value").param("messages"))
            }
        }
    }
}

/// Converts a message of the history; its files are stored already.
pub(crate) fn recalled(message: Message, files: Vec<message::Part>) -> ImportedMessage {
    match message {
        Message::System(text) => ImportedMessage::text(Role::System, text),
        Message::User(parts) => {
            let texts = parts.into_iter().filter_map(|part| match part {
                Part::Text(text) => Some(message::Part::Text(text)),
                Part::Media(_) => None,
            });
            let parts = texts.chain(files).collect();
            ImportedMessage { role: Role::User, parts, wording: None, call: None }
        }
        Message::Assistant { text, calls } => {
            let mut said = ImportedMessage::text(Role::Assistant, text);
            said.parts.extend(calls.into_iter().map(call_part));
            said
        }
        Message::Result { call, text } => {
            let said = ImportedMessage::text(Role::Tool, text);
            ImportedMessage { call: Some(call_id(&call)), ..said }
        }
    }
}

fn call_part(Call { id, tool, arguments }: Call) -> message::Part {
    let input = serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
    message::Part::Call { call: call_id(&id), tool, input }
}

/// The id of a call that was made elsewhere, where any text may be an id.
pub(crate) fn call_id(text: &str) -> CallId {
    let hash = || CallId::parse(&format!("call_{}", &hex::encode(Sha256::digest(text))[..32]));
    CallId::parse(text).or_else(hash).expect("letters and digits are an id")
}

/// Converts a client's tool.
pub(crate) fn client_tool(tool: &FunctionTool) -> ClientTool {
    ClientTool {
        name: tool.name.clone(),
        description: tool.description.clone(),
        schema: tool.parameters.clone(),
        risk: Risk::Medium,
        repeatable: false,
        front_end: Some(FRONT_END.into()),
        strict: tool.strict,
    }
}
