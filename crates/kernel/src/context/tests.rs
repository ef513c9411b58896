//! Tests of which sections are new and which are known.

use expect_test::{Expect, expect};

use super::*;
use crate::id::GeneratedId;

fn sections(text: &str) -> Vec<Section> {
    let section = |pair: &str| {
        let (title, text) = pair.split_once('=').expect("title=text");
        Section { title: title.into(), text: text.into() }
    };
    text.split_whitespace().map(section).collect()
}

/// Applies one survey after the other and shows the text that a prompt would contain.
#[track_caller]
fn check(surveys: &[&str], expected: Expect) {
    let mut context = Context::default();
    let mut shown = String::new();
    for (n, survey) in surveys.iter().enumerate() {
        let news = context.diff(sections(survey));
        if !news.is_empty() {
            shown += &format!("turn {n}: {}\n", format_update(&news));
        }
        context.apply(&TurnId::named(format!("t{n}")), &news);
    }
    let updates = context.updates.len();
    let before = context.current().to_vec();
    context.fold_updates();
    assert_eq!(context.current(), before, "a compaction changes no known section");
    expected.assert_eq(&format!("{shown}{updates} later\n{}\n", format_base(&context.base)));
}

#[test]
fn only_changed_sections_are_sent_again() {
    check(
        &["TREE=a MAP=f", "TREE=a MAP=f", "TREE=b MAP=f", "TREE=b GIT=M"],
        expect![[r#"
            turn 0: Workspace context, changed since:
            TREE:
            a

            MAP:
            f
            turn 2: Workspace context, changed since:
            TREE:
            b
            turn 3: Workspace context, changed since:
            GIT:
            M

            MAP: nothing any more
            2 later
            Workspace context:
            TREE:
            b

            GIT:
            M
        "#]],
    );
}

#[test]
fn an_empty_workspace_has_no_update() {
    check(
        &["", ""],
        expect![[r#"
            0 later
            Workspace context:

        "#]],
    );
}
