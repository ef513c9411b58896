//! Parses the summaries and titles that a model wrote.

/// The longest title, in words and in characters.
const TITLE_WORDS_LIMIT: usize = 6;
const TITLE_CHARACTERS_LIMIT: usize = 48;
/// The title of a conversation that cannot be named.
const UNNAMED: &str = "New chat";
/// The longest summary from an answer without headings, in characters.
const UNFORMATTED_LIMIT: usize = 500;

/// A title: the first line, without the decoration that models add.
pub(super) fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let words: Vec<&str> = bare(line).split_whitespace().take(TITLE_WORDS_LIMIT).collect();
    let cut: String = words.join(" ").chars().take(TITLE_CHARACTERS_LIMIT).collect();
    let cut = bare(&cut);
    if cut.is_empty() { UNNAMED.into() } else { cut.into() }
}

/// Removes marks of headings and lists, labels, quotation marks and final punctuation, in any order.
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

/// A summary and the facts below it. An answer without headings is the summary itself.
pub(super) fn summary(text: &str) -> (String, Vec<String>) {
    let start = heading(text, "SUMMARY:");
    let facts = heading(text, "FACTS:");
    let listed = facts.map(|(_, end)| list(&text[end..])).unwrap_or_default();
    let end = facts.map_or(text.len(), |(start, _)| start);
    let body = start.and_then(|(_, from)| text.get(from..end)).map(str::trim);
    match body.filter(|body| !body.is_empty()) {
        Some(body) => (body.into(), listed),
        None => (text.trim().chars().take(UNFORMATTED_LIMIT).collect(), listed),
    }
}

/// The start and end of a heading at the beginning of a line.
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
mod tests;
