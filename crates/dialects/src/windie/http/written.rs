//! Parses the summaries and titles that a model wrote.

/// The longest title, in words and in characters.
const TITLE_WORDS_LIMIT: usize = 6;
const CHARACTERS: usize = 48;
/// What a conversation is called that cannot be named.
const UNNAMED: &str = "New chat";
/// How much of an answer without any form is taken for a summary, in characters.
const FORMLESS: usize = 500;

/// A title: the first line, without what models like to put around it.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let words: Vec<&str> = bare(line).split_whitespace().take(TITLE_WORDS_LIMIT).collect();
    let cut: String = words.join(" ").chars().take(CHARACTERS).collect();
    let cut = bare(&cut);
    if cut.is_empty() { UNNAMED.into() } else { cut.into() }
}

/// Without marks of headings and lists, labels, quotation marks and punctuation at its end; whatever
/// order they stand in.
fn bare(line: &str) -> &str {
    let mut rest = line.trim();
    loop {
        let before = rest;
        rest = rest.trim_start_matches('#').trim();
        rest = rest.trim_start_matches(['-', '\u{2022}']).trim();
        rest = unlabelled(rest);
        rest = rest.trim_matches(AROUND).trim();
        rest = rest.trim_end_matches(['.', '!', '?', ';', ':']).trim();
        if rest == before {
            return rest;
        }
    }
}

/// Quotation marks, backticks, and the stars of lists and of bold type.
const AROUND: [char; 8] = ['*', '"', '\'', '`', '\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

fn unlabelled(line: &str) -> &str {
    let label = line.get(..6).filter(|start| start.eq_ignore_ascii_case("title:"));
    label.map_or(line, |label| line[label.len()..].trim_start())
}

/// A summary and the facts below it. An answer that does not keep to the form is its own summary.
pub(super) fn summary(text: &str) -> (String, Vec<String>) {
    let start = heading(text, "SUMMARY:");
    let facts = heading(text, "FACTS:");
    let listed = facts.map(|(_, end)| list(&text[end..])).unwrap_or_default();
    let end = facts.map_or(text.len(), |(start, _)| start);
    let body = start.and_then(|(_, from)| text.get(from..end)).map(str::trim);
    match body.filter(|body| !body.is_empty()) {
        Some(body) => (body.into(), listed),
        None => (text.trim().chars().take(FORMLESS).collect(), listed),
    }
}

/// Where a heading stands at the beginning of a line, and where it ends.
fn heading(text: &str, word: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        let found = text.get(start..start + word.len());
        if found.is_some_and(|found| found.eq_ignore_ascii_case(word)) {
            return Some((start, start + word.len()));
        }
        at += line.len();
    }
    None
}

fn list(text: &str) -> Vec<String> {
    let items = text.lines().filter_map(|line| line.trim().strip_prefix(['-', '*', '\u{2022}']));
    items.map(str::trim).filter(|item| !item.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, then: &str) {
        assert_eq!(title(written), then, "{written:?}");
    }

    #[test]
    fn a_title_is_bare_and_short() {
        check("Fix the login page", "Fix the login page");
        check("\n\n  ## Fix the login page\nBecause…", "Fix the login page");
        check("Title: \"Fix the login page.\"", "Fix the login page");
        check("- **`Fix it`**", "Fix it");
        check("* title: Fix it!?;:.", "Fix it");
        check("\u{201c}Fix it\u{201d}", "Fix it");
        check("\u{2022} Fix it", "Fix it");
        check("one two three four five six seven", "one two three four five six");
        check(&"x".repeat(60), &"x".repeat(48));
        check("a: b. c", "a: b. c");
        check("größer als je zuvor", "größer als je zuvor");
    }

    #[test]
    fn what_is_no_title_is_a_new_chat() {
        for nothing in ["", "  \n ", "###", "\"\"", "title:", "- ", "...", "Title: \"\""] {
            check(nothing, "New chat");
        }
    }

    #[test]
    fn a_summary_has_its_facts_below_it() {
        let whole =
            "SUMMARY:\nThey met.\nTwice.\n\nFACTS:\n- likes tea\n-  lives by the sea \n-\nx";
        let facts = vec!["likes tea".to_owned(), "lives by the sea".to_owned()];
        assert_eq!(summary(whole), ("They met.\nTwice.".into(), facts));
        assert_eq!(summary("Summary: short\nfacts:\n"), ("short".into(), vec![]));
        assert_eq!(summary("SUMMARY: alone"), ("alone".into(), vec![]));
        let facts_first = "FACTS:\n- one\nSUMMARY: after";
        let (text, facts) = summary(facts_first);
        assert_eq!((text.as_str(), facts.len()), (facts_first, 1));
    }

    #[test]
    fn an_answer_without_form_is_its_own_summary() {
        let long = "ä".repeat(600);
        assert_eq!(summary(&long), ("ä".repeat(500), vec![]));
        assert_eq!(summary(" hello "), ("hello".into(), vec![]));
        assert_eq!(summary(""), (String::new(), vec![]));
        assert_eq!(summary("SUMMARY:\nFACTS:\n- x").1, ["x"]);
    }
}
