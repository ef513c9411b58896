//! The options of the harness: when a session tree is kept.

use serde_json::json;

use super::*;
use crate::dialect::fixture::Fixture;

#[test]
fn the_session_tree_goes_with_the_listener_unless_it_is_set() {
    let on = [("harness", "127.0.0.1:8787".parse().unwrap())];
    let keeps = |addresses: &[_], set: Option<bool>| {
        let values = set.map(|set| ("harness.session_tree", json!(set)));
        Harness::new(&Fixture::new(values).config(addresses)).writes_tree
    };
    assert!(keeps(&on, None) && !keeps(&[], None));
    assert!(keeps(&[], Some(true)) && !keeps(&on, Some(false)));
}
