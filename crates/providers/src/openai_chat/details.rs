//! `reasoning_details`: the sealed thoughts of a model behind a router, which are sent back
//! unchanged.

use serde_json::{Map, Value};

/// Fields that arrive in pieces; the others are sent once.
const GROWING_FIELDS: [&str; 3] = ["text", "summary", "data"];

/// The details of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Details {
    items: Vec<Map<String, Value>>,
}

impl Details {
    /// Adds the pieces of one event. Pieces of one item follow each other and have its type and index.
    pub(super) fn add(&mut self, pieces: Vec<Map<String, Value>>) {
        for piece in pieces {
            match self.items.last_mut() {
                Some(last) if same(last, &piece) => grow(last, piece),
                _ => self.items.push(piece),
            }
        }
    }

    /// All items, if any of them must be sent back.
    pub(super) fn finish(&mut self) -> Option<Value> {
        let items = std::mem::take(&mut self.items);
        (!items.is_empty()).then(|| items.into_iter().map(Value::Object).collect())
    }
}

fn same(one: &Map<String, Value>, two: &Map<String, Value>) -> bool {
    ["type", "index"].iter().all(|key| one.get(*key) == two.get(*key))
}

fn grow(item: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (key, value) in piece {
        match (item.get_mut(&key), value) {
            (Some(Value::String(before)), Value::String(more))
                if GROWING_FIELDS.contains(&&*key) =>
            {
                before.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => {
                item.insert(key, value);
            }
        }
    }
}
