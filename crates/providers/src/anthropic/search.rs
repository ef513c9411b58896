//! Searches that the provider makes in the middle of an answer.
//!
//! What was searched for and what was found are blocks of the answer. The finds are encrypted, and the
//! model wants both back, in this order and whole, to know in later turns what it read.

use quintet_kernel::model::{Place, Sealed};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Nothing that is searched for is longer.
const LONGEST: usize = 16 * 1024;

/// The searches that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct Searching {
    open: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    index: u64,
    id: String,
    arguments: String,
    /// How much was written when people had been told of it.
    told: Option<u64>,
}

impl Searching {
    pub(super) fn begin(&mut self, index: u64, id: &str) {
        self.open.push(Asked { index, id: id.to_owned(), arguments: String::new(), told: None });
    }

    /// More of the arguments of a block, if it is a search.
    pub(super) fn append(&mut self, index: u64, text: &str) {
        if let Some(asked) = self.at(index).filter(|it| it.arguments.len() + text.len() <= LONGEST)
        {
            asked.arguments.push_str(text);
        }
    }

    /// What is searched for, once its block is over.
    pub(super) fn asked(&mut self, index: u64) -> Option<String> {
        Some(self.at(index)?.input()["query"].as_str()?.to_owned())
    }

    /// People were told of it, and so much is written by now.
    pub(super) fn told(&mut self, index: u64, written: u64) {
        if let Some(asked) = self.at(index) {
            asked.told = Some(written);
        }
    }

    /// What parts the words that people were told from a thought after them, where no answer came: a
    /// thought is only taken back as it was signed.
    pub(super) fn partings(&mut self) -> impl Iterator<Item = Sealed> {
        let ends = self.open.drain(..).filter_map(|asked| asked.told);
        ends.map(|end| Sealed { place: Place::Output(end), content: json!({ "block": null }) })
    }

    /// The blocks that go back: of a search that was asked for, and of what it found.
    pub(super) fn answered(&mut self, id: &str, content: Option<&RawValue>) -> Option<[Value; 2]> {
        let at = self.open.iter().position(|asked| asked.id == id)?;
        let content: Value = serde_json::from_str(content?.get()).ok()?;
        let asked = self.open.remove(at);
        let input = asked.input();
        Some([
            json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": input }),
            json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": content }),
        ])
    }

    fn at(&mut self, index: u64) -> Option<&mut Asked> {
        self.open.iter_mut().find(|asked| asked.index == index)
    }
}

impl Asked {
    /// The arguments, which must be an object when they go back.
    fn input(&self) -> Value {
        let input = serde_json::from_str(&self.arguments).ok();
        input.filter(Value::is_object).unwrap_or_else(|| json!({}))
    }
}
