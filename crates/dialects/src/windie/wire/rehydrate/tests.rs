//! Results and the calls that they belong to.

use quintet_kernel::id::GeneratedId as _;

use super::*;

fn entry(role: Role, calls: &[&str], call: Option<&str>) -> Entry {
    let id = |name: &str| CallId::named(name.into());
    let asked = |name: &&str| PromptCall::new(id(name), "t", json!({}));
    let calls = calls.iter().map(asked).collect();
    Entry {
        role,
        text: String::new(),
        tool: None,
        screenshots: Vec::new(),
        calls,
        call: call.map(id),
    }
}

#[test]
fn a_result_belongs_to_a_call_before_it_and_each_call_has_one() {
    let mut entries = [
        entry(Role::Tool, &[], Some("a")),
        entry(Role::Assistant, &["a", "a", "b"], None),
        entry(Role::Tool, &[], Some("a")),
        entry(Role::Tool, &[], Some("a")),
        entry(Role::Tool, &[], Some("a")),
        entry(Role::Tool, &[], Some("b")),
    ];
    link(&mut entries);
    let linked = entries.map(|entry| entry.call.is_some());
    assert_eq!(linked, [false, false, true, true, false, true]);
}

#[test]
fn many_messages_take_no_longer_than_they_are_long() {
    let names: Vec<String> = (0..200_000).map(|n| format!("c{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut entries = vec![entry(Role::Assistant, &names, None)];
    entries.extend(std::iter::repeat_with(|| entry(Role::User, &[], None)).take(200_000));
    entries.extend(names.iter().map(|name| entry(Role::Tool, &[], Some(name))));
    link(&mut entries);
    assert!(entries[200_001..].iter().all(|entry| entry.call.is_some()));
}
