//! Searches that the provider makes in the middle of an answer.
//!
//! Queries and results are blocks of the answer. The results are encrypted, and the model needs both back,
//! in this order and complete, to use them in later turns.

use quintet_kernel::model::{SealPosition, Sealed};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Bytes of a search query.
const QUERY_BYTES_LIMIT: usize = 16 * 1024;

/// The searches that have no result yet.
#[derive(Debug, Default)]
pub(super) struct Searching {
    open: Vec<OpenSearch>,
}

#[derive(Debug)]
struct OpenSearch {
    index: u64,
    id: String,
    arguments: String,
    /// The output position at which the search was shown to the user.
    shown_at: Option<u64>,
}

impl Searching {
    pub(super) fn begin(&mut self, index: u64, id: &str) {
        self.open.push(OpenSearch {
            index,
            id: id.to_owned(),
            arguments: String::new(),
            shown_at: None,
        });
    }

    /// More of the arguments of a block, if it is a search.
    pub(super) fn append(&mut self, index: u64, text: &str) {
        if let Some(asked) =
            self.at(index).filter(|it| it.arguments.len() + text.len() <= QUERY_BYTES_LIMIT)
        {
            asked.arguments.push_str(text);
        }
    }

    /// The query of a search whose block has ended.
    pub(super) fn query(&mut self, index: u64) -> Option<String> {
        Some(self.at(index)?.input()["query"].as_str()?.to_owned())
    }

    /// Records that a search was shown, and the output position after it.
    pub(super) fn mark_shown(&mut self, index: u64, written: u64) {
        if let Some(asked) = self.at(index) {
            asked.shown_at = Some(written);
        }
    }

    /// Separators between the shown text of searches without a result and the next thought: the API
    /// accepts a thought only as it was signed.
    pub(super) fn unanswered_separators(&mut self) -> impl Iterator<Item = Sealed> {
        let ends = self.open.drain(..).filter_map(|asked| asked.shown_at);
        ends.map(|end| Sealed {
            place: SealPosition::Output(end),
            content: json!({ "block": null }),
        })
    }

    /// The blocks that are sent back to the API: the search and its result.
    pub(super) fn finish(&mut self, id: &str, content: Option<&RawValue>) -> Option<[Value; 2]> {
        let at = self.open.iter().position(|asked| asked.id == id)?;
        let content: Value = serde_json::from_str(content?.get()).ok()?;
        let asked = self.open.remove(at);
        let input = asked.input();
        Some([
            json!({ "type": "server_tool_use", "id": id, "name": "web_search", "input": input }),
            json!({ "type": "web_search_tool_result", "tool_use_id": id, "content": content }),
        ])
    }

    fn at(&mut self, index: u64) -> Option<&mut OpenSearch> {
        self.open.iter_mut().find(|asked| asked.index == index)
    }
}

impl OpenSearch {
    /// The arguments, which must be an object when they are sent back.
    fn input(&self) -> Value {
        let input = serde_json::from_str(&self.arguments).ok();
        input.filter(Value::is_object).unwrap_or_else(|| json!({}))
    }
}
