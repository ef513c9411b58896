//! The tools that are offered, as they are written in a request.
//!
//! Tools hardly ever change from one request to the next, and their schemas are most of a short
//! one: the last serialized form is cached.

use std::sync::{Arc, Mutex, PoisonError};

use quintet_kernel::tool::Spec;
use serde_json::value::RawValue;

use crate::family::Family;

/// What was offered last.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    last: Mutex<Option<Written>>,
}

#[derive(Debug)]
struct Written {
    tools: Vec<Arc<Spec>>,
    search: bool,
    json: Arc<RawValue>,
}

impl Offer {
    /// The tools, and the provider's own search, as the family writes them; none if there is
    /// neither.
    pub(crate) fn written(
        &self,
        tools: &[Arc<Spec>],
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
        *last = Some(Written { tools: tools.to_vec(), search, json: Arc::clone(&json) });
        Ok(Some(json))
    }
}

/// Specifications never change, so the very same ones are the same.
fn same(one: &[Arc<Spec>], two: &[Arc<Spec>]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| Arc::ptr_eq(one, two))
}

#[cfg(test)]
mod tests {
    use quintet_kernel::tool::{Kind, Placement};
    use serde_json::json;

    use super::*;
    use crate::openai_chat::Chat;
    use crate::openai_responses::Responses;

    #[test]
    fn tools_are_written_anew_only_when_they_change() {
        let offer = Offer::default();
        let spec = |name: &str| {
            Arc::new(Spec {
                name: name.into(),
                description: "does".into(),
                schema: json!({}),
                kind: Kind::Read,
                placement: Placement::Daemon,
            })
        };
        let (one, two) = (vec![spec("one")], vec![spec("two")]);
        let first = offer.written(&one, false, &Chat).unwrap().unwrap();
        assert!(Arc::ptr_eq(&first, &offer.written(&one, false, &Chat).unwrap().unwrap()));
        assert!(offer.written(&two, false, &Chat).unwrap().unwrap().get().contains("two"));
        assert_eq!(offer.written(&one, false, &Chat).unwrap().unwrap().get(), first.get());
        assert!(offer.written(&[], false, &Chat).unwrap().is_none());
        let plain = offer.written(&one, false, &Responses).unwrap().unwrap();
        let search = offer.written(&one, true, &Responses).unwrap().unwrap();
        assert!(search.get().contains("web_search") && !plain.get().contains("web_search"));
    }
}
