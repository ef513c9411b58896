//! Tests of editing keys.

use super::*;

/// Types keys, `<name>` or letters, and shows the text with the cursor as `|`.
#[track_caller]
fn check(keys: &str, expect: &str) {
    let mut editor = Editor::default();
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let (key, length) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((name, _)) => (named(name), name.len() + 2),
            None => (KeyCode::Char(first).into(), first.len_utf8()),
        };
        editor.key(key);
        rest = &rest[length..];
    }
    let (before, after) = editor.text().split_at(editor.cursor());
    assert_eq!(format!("{before}|{after}"), expect);
}

fn named(name: &str) -> KeyEvent {
    match name {
        "left" => KeyCode::Left.into(),
        "right" => KeyCode::Right.into(),
        "up" => KeyCode::Up.into(),
        "down" => KeyCode::Down.into(),
        "home" => KeyCode::Home.into(),
        "back" => KeyCode::Backspace.into(),
        "del" => KeyCode::Delete.into(),
        "newline" => KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
        "word-left" => KeyEvent::new(KeyCode::Left, KeyModifiers::CONTROL),
        "word-right" => KeyEvent::new(KeyCode::Right, KeyModifiers::CONTROL),
        ctrl => KeyEvent::new(KeyCode::Char(ctrl.chars().next().unwrap()), KeyModifiers::CONTROL),
    }
}

#[test]
fn letters_are_inserted_at_the_cursor() {
    check("ab<left>c", "ac|b");
    check("aé日<back>", "aé|");
    check("👨‍👩‍👧<back>", "|");
    check("ab<home><del>", "|b");
    check("<back><del><left><up><down>", "|");
}

#[test]
fn words_and_lines_are_deleted_at_once() {
    check("one two<w>", "one |");
    check("one two  <w>", "one |");
    check("one two<word-left><word-left><word-right>", "one| two");
    check("one two<a>x<e>y", "xone twoy|");
    check("one two<word-left><u>", "|two");
    check("one two<word-left><k>", "one |");
    check("日 本<w>", "日 |");
}

#[test]
fn several_lines_are_edited() {
    check("abc<newline>d<up>", "a|bc\nd");
    check("a<newline>bcd<up><down>", "a\nb|cd");
    check("a<j>b<home><back>", "a|b");
}

#[test]
fn a_paste_inserts_no_control_characters() {
    let mut editor = Editor::default();
    editor.insert("a\r\nb\rc\td\u{1b}[31m");
    assert_eq!(editor.text(), "a\nb\nc    d[31m");
}
