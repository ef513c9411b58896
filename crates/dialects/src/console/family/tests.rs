//! Which sessions stand below which.

use quintet_kernel::session_summary::Fork;
use quintet_kernel::{Status, Time};

use super::*;

fn summary(id: &str, created: i64, parent: Option<&str>, fork: Option<&str>) -> SessionSummary {
    let of = |id: &str| SessionId::parse(id).unwrap();
    SessionSummary {
        id: of(id),
        created: Time::from_micros(created),
        forked: fork.map(|parent| Fork { parent: of(parent), at: 7 }),
        model: None,
        head: 1,
        updated: Time::default(),
        status: Status::Active,
        workspace: "/repo".into(),
        labels: parent.map(|id| ("parent".to_owned(), id.to_owned())).into_iter().collect(),
        title: id.to_owned(),
        last_prompt: String::new(),
        last_answer: String::new(),
        messages: 0,
        tokens: 0,
        usage: quintet_kernel::model::Usage::default(),
        context: 0,
        last_turn: None,
        error: None,
        open: false,
    }
}

/// A tree in one line: `a(b c(d))`.
fn drawn(node: &Value) -> String {
    let below: Vec<String> = node["below"].as_array().unwrap().iter().map(drawn).collect();
    let title = node["title"].as_str().unwrap();
    if below.is_empty() { title.to_owned() } else { format!("{title}({})", below.join(" ")) }
}

fn check(summaries: &[SessionSummary], root: &str, expected: &str) {
    let all = summaries.iter().map(|one| (one.id.clone(), one.clone())).collect();
    let tree = Tree::new(&all).encode(&SessionId::parse(root).unwrap());
    assert_eq!(drawn(&tree), expected);
}

#[test]
fn subagents_and_forks_stand_below_in_the_order_of_their_beginning() {
    let all = [
        summary("a", 1, None, None),
        summary("c", 3, Some("a"), None),
        summary("b", 2, Some("a"), None),
        summary("d", 4, None, Some("c")),
        summary("other", 5, None, None),
    ];
    check(&all, "a", "a(b c(d))");
    check(&all, "c", "c(d)");
}

#[test]
fn a_fork_of_a_subagent_stands_below_the_subagent() {
    let all = [
        summary("a", 1, None, None),
        summary("b", 2, Some("a"), None),
        summary("c", 3, Some("a"), Some("b")),
    ];
    check(&all, "a", "a(b(c))");
}

#[test]
fn sessions_that_name_each_other_are_shown_once() {
    let all = [summary("a", 1, Some("b"), None), summary("b", 2, Some("a"), None)];
    check(&all, "a", "a(b)");
}
