//! Caches the JSON of the tools in a request.
//!
//! Tools rarely change between requests, and their schemas are most of a short request.

use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::tool::ToolSpec;
use serde_json::value::RawValue;

use crate::family::Family;

/// The tools of the last request, serialized.
#[derive(Debug, Default)]
pub(crate) struct ToolsCache {
    last: Mutex<Option<CachedTools>>,
}

#[derive(Debug)]
struct CachedTools {
    tools: Vec<Arc<ToolSpec>>,
    search: bool,
    json: Arc<RawValue>,
}

impl ToolsCache {
    /// The tools and the provider's own search as JSON of the family; `None` if there is neither. Fails if
    /// they cannot be serialized.
    pub(crate) fn json(
        &self,
        tools: &[Arc<ToolSpec>],
        search: bool,
        family: &dyn Family,
    ) -> serde_json::Result<Option<Arc<RawValue>>> {
        if tools.is_empty() && !search {
            return Ok(None);
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) =
            last.as_ref().filter(|last| last.search == search && same(&last.tools, tools))
        {
            return Ok(Some(Arc::clone(&last.json)));
        }
        let json: Arc<RawValue> = family.tools(tools, search)?.into();
        *last = Some(CachedTools { tools: tools.to_vec(), search, json: Arc::clone(&json) });
        Ok(Some(json))
    }
}

/// True if both lists hold the same specifications, which never change.
fn same(one: &[Arc<ToolSpec>], two: &[Arc<ToolSpec>]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| Arc::ptr_eq(one, two))
}

#[cfg(test)]
mod tests {
    use quintet_kernel::tool::{Placement, ToolKind};
    use serde_json::json;

    use super::*;
    use crate::openai_chat::Chat;
    use crate::openai_responses::Responses;

    #[test]
    fn tools_are_serialized_again_only_when_they_change() {
        let tools_cache = ToolsCache::default();
        let spec = |name: &str| {
            Arc::new(ToolSpec {
                name: name.into(),
                description: "does".into(),
                schema: json!({}),
                kind: ToolKind::Read,
                placement: Placement::Daemon,
                strict: false,
            })
        };
        let (one, two) = (vec![spec("one")], vec![spec("two")]);
        let first = tools_cache.json(&one, false, &Chat).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &tools_cache.json(&one, false, &Chat).unwrap().unwrap()));
        assert!(tools_cache.json(&two, false, &Chat).unwrap().unwrap().get().contains("two"));
        assert_eq!(tools_cache.json(&one, false, &Chat).unwrap().unwrap().get(), first.get());
        assert!(tools_cache.json(&[], false, &Chat).unwrap().is_none());
        let plain = tools_cache.json(&one, false, &Responses).unwrap().unwrap();
        let search = tools_cache.json(&one, true, &Responses).unwrap().unwrap();
        assert!(search.get().contains("web_search") && !plain.get().contains("web_search"));
    }
}
