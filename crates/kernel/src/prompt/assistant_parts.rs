//! A model message in the order in which it was written, with sealed data at its positions.

use crate::message::{Message, Part};
use crate::model::{AssistantPart, PromptCall, SealPosition, Sealed};

/// The parts of a model message, in order.
pub fn assistant_parts(message: &Message) -> Vec<AssistantPart> {
    let mut writer =
        PartWriter { sealed: &message.sealed, written: 0, calls: 0, parts: Vec::new() };
    writer.seal_output(0);
    for part in &message.parts {
        match part {
            Part::Text(text) => writer.write(text, AssistantPart::Text),
            Part::Thought(text) => writer.write(text, AssistantPart::Thought),
            Part::Call { call, tool, input } => {
                let (call, tool, input) = (call.clone(), tool.clone(), input.clone());
                writer.call(PromptCall::new(call, tool, input));
            }
            // Models do not write such parts.
            Part::Media { .. } | Part::Context(_) => {}
        }
    }
    writer.parts
}

struct PartWriter<'a> {
    sealed: &'a [Sealed],
    /// Bytes of output so far.
    written: u64,
    /// Calls so far.
    calls: u64,
    parts: Vec<AssistantPart>,
}

impl PartWriter<'_> {
    /// Writes output, split wherever sealed data follow: two thoughts with a signature each are one
    /// segment of output.
    fn write(&mut self, mut text: &str, kind: fn(String) -> AssistantPart) {
        while !text.is_empty() {
            let left = self.next_seal().map_or(text.len(), |bytes| bytes.min(text.len()));
            // A position inside a character is not valid and is treated as the end.
            let (head, rest) = text.split_at_checked(left).unwrap_or((text, ""));
            self.parts.push(kind(head.into()));
            self.seal_output(head.len() as u64);
            text = rest;
        }
    }

    /// Number of bytes until the next sealed data in the output.
    fn next_seal(&self) -> Option<usize> {
        let ahead = |sealed: &Sealed| match sealed.place {
            SealPosition::Output(at) => at.checked_sub(self.written).filter(|bytes| *bytes > 0),
            SealPosition::Call(_) => None,
        };
        self.sealed.iter().filter_map(ahead).min().and_then(|bytes| usize::try_from(bytes).ok())
    }

    /// Writes the sealed data at an output position; none the first time.
    fn seal_output(&mut self, bytes: u64) {
        let from = if bytes == 0 { 0 } else { self.written + 1 };
        self.written += bytes;
        let upto = self.written;
        self.seal(|place| matches!(place, SealPosition::Output(at) if (from..=upto).contains(&at)));
    }

    fn call(&mut self, call: PromptCall) {
        let number = self.calls;
        self.seal(|place| place == SealPosition::Call(number));
        self.calls += 1;
        self.parts.push(AssistantPart::Call(call));
    }

    fn seal(&mut self, here: impl Fn(SealPosition) -> bool) {
        let found = self.sealed.iter().filter(|sealed| here(sealed.place));
        self.parts.extend(found.map(|sealed| AssistantPart::Sealed(sealed.content.clone())));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::id::{CallId, MessageId, TurnId};
    use crate::message::Role;
    use crate::time::Time;

    fn check(parts: Vec<Part>, sealed: &[(SealPosition, &str)], expected: &[&str]) {
        let sealed =
            sealed.iter().map(|(place, word)| Sealed { place: *place, content: json!(word) });
        let message = Message {
            id: MessageId::parse("m1").unwrap(),
            role: Role::Assistant,
            parts,
            wording: None,
            at: Time::default(),
            turn: TurnId::parse("t1").unwrap(),
            attempt: 1,
            call: None,
            ending: None,
            interrupted: false,
            by: None,
            sealed: sealed.collect(),
            files: Vec::new(),
        };
        let show = |parts: &AssistantPart| match parts {
            AssistantPart::Text(text) => format!("text {text}"),
            AssistantPart::Thought(text) => format!("thought {text}"),
            AssistantPart::Sealed(content) => format!("sealed {}", content.as_str().unwrap()),
            AssistantPart::Call(call) => format!("call {}", call.tool),
        };
        assert_eq!(assistant_parts(&message).iter().map(show).collect::<Vec<_>>(), expected);
    }

    fn call(tool: &str) -> Part {
        Part::Call { call: CallId::parse("c1").unwrap(), tool: tool.into(), input: json!({}) }
    }

    #[test]
    fn sealed_data_keep_their_positions() {
        use SealPosition::{Call, Output};
        let parts = || {
            vec![
                Part::Thought("oneübertwo".into()),
                Part::Text("said".into()),
                call("a"),
                call("b"),
            ]
        };
        let calls = ["call a", "call b"];
        check(parts(), &[], &["thought oneübertwo", "text said", calls[0], calls[1]]);
        check(
            parts(),
            &[(Output(0), "0"), (Output(8), "8"), (Output(11), "11"), (Call(1), "b")],
            &[
                "sealed 0",
                "thought oneüber",
                "sealed 8",
                "thought two",
                "sealed 11",
                "text said",
                "call a",
                "sealed b",
                "call b",
            ],
        );
    }

    #[test]
    fn an_invalid_position_is_tolerated() {
        use SealPosition::{Call, Output};
        check(
            vec![Part::Text("ü".into())],
            &[(Output(1), "x"), (Call(9), "y")],
            &["text ü", "sealed x"],
        );
        check(vec![], &[(Output(99), "z")], &[]);
    }
}
