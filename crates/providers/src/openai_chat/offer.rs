//! The tools that are offered, as they are written in a request.
//!
//! They hardly ever change from one request to the next, and their schemas are most of a short one:
//! what was written last is kept.

use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::tool::Spec;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// What was offered last.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    last: Mutex<Option<Written>>,
}

#[derive(Debug)]
struct Written {
    tools: Vec<Arc<Spec>>,
    json: Arc<RawValue>,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl Offer {
    /// These tools as an array; nothing if there are none.
    pub(super) fn written(&self, tools: &[Arc<Spec>]) -> serde_json::Result<Option<Arc<RawValue>>> {
        if tools.is_empty() {
            return Ok(None);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| same(&last.tools, tools)) {
            return Ok(Some(Arc::clone(&last.json)));
        }
        let array: Vec<Tool<'_>> = tools.iter().map(|spec| Tool::new(spec)).collect();
        let json: Arc<RawValue> = to_raw_value(&array)?.into();
        *last = Some(Written { tools: tools.to_vec(), json: Arc::clone(&json) });
        Ok(Some(json))
    }
}

impl<'a> Tool<'a> {
    fn new(spec: &'a Spec) -> Self {
        let function =
            Function { name: &spec.name, description: &spec.description, parameters: &spec.schema };
        Self { kind: "function", function }
    }
}

/// Specifications never change, so the very same ones are the same.
fn same(one: &[Arc<Spec>], two: &[Arc<Spec>]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| Arc::ptr_eq(one, two))
}
