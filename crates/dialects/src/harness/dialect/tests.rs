//! The options of the harness: when the session tree is written.

use serde_json::json;

use super::*;
use crate::dialect::fixture::Fixture;

#[test]
fn the_session_tree_is_written_if_the_listener_is_on_unless_it_is_set() {
    let on = [("harness", "127.0.0.1:8787".parse().unwrap())];
    let writes_tree = |addresses: &[_], set: Option<bool>| {
        let values = set.map(|set| ("harness.session_tree", json!(set)));
        Harness::new(&Fixture::new(values).config(addresses)).writes_tree
    };
    assert!(writes_tree(&on, None) && !writes_tree(&[], None));
    assert!(writes_tree(&[], Some(true)) && !writes_tree(&on, Some(false)));
}
