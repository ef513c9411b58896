//! Searches before a small model answers: it takes the first plausible answer for the right one, so
//! the lines that a message is about are added before it.

use serde_json::{Value, json};

/// Words without information: English function words, and words that every workspace has.
const COMMON: &str = "\
    about after all and any anything are before between but can class code comment could \
    describe detail did does each every everywhere exist explain file files find first folder \
    for from function give has have here how into its know last like line lines list many mean \
    means method module most much name none not occur off one only out please program project \
    repository say says script should show some such summarize take tell than that the their \
    them then there these they think this those use used uses using variable want was were what \
    when where which who whose why will with without work works workspace would write you your";
/// Maximum number of words of one search.
const WORDS_LIMIT: usize = 5;
/// Maximum number of lines, so that they are evaluated in seconds.
const LINES_LIMIT: usize = 10;
/// Lines around a match, to find the definition that contains it; not sent to the model.
const CONTEXT_LINES: usize = 12;
/// A word is searched without its ending if at least this many letters are left.
const STEM_LETTERS: usize = 4;

/// The search for the subject of a message; `None` if it has no word to search for.
pub(crate) fn search(message: &str) -> Option<Value> {
    let names = names(message);
    let (words, context) =
        if names.is_empty() { (stems(message), 0) } else { (names, CONTEXT_LINES) };
    let query = words.into_iter().take(WORDS_LIMIT).collect::<Vec<_>>().join("|");
    let input = json!({
        "query": query,
        "regex": true,
        "ignore_case": true,
        "context": context,
        "max_results": LINES_LIMIT,
    });
    (!query.is_empty()).then_some(input)
}

/// Identifiers: `load_data`, `loadData`, `TODO`, `main()`.
fn names(message: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let is_path = |word: &&str| word.trim_end_matches(['.', '?', ',']).contains('.');
    for word in message.split_whitespace().filter(|word| !is_path(word)) {
        let is_called = word.contains('(');
        let word = word.trim_start_matches(['`', '"', '\'']).split('(').next().unwrap_or_default();
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let plain = word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        let is_name = is_called || word.contains('_') || has_inner_capital(word);
        if plain && is_name && word.len() > 1 && !names.iter().any(|name| name == word) {
            names.push(word.to_owned());
        }
    }
    names
}

/// True if a capital letter follows another letter.
fn has_inner_capital(word: &str) -> bool {
    word.chars().skip(1).any(char::is_uppercase)
}

/// The informative words, without their endings.
fn stems(message: &str) -> Vec<String> {
    let lower = message.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    let mut stems: Vec<String> = Vec::new();
    for word in words.filter(|word| word.chars().count() > 2 && !is_common(word)) {
        // Short words are parts of many others.
        let is_short = word.chars().count() < STEM_LETTERS;
        let stem = if is_short { format!(r"\b{word}\b") } else { stem(word).to_owned() };
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

fn is_common(word: &str) -> bool {
    COMMON.split_whitespace().any(|common| common == word)
}

fn stem(word: &str) -> &str {
    let endings = ["ing", "ed", "es", "s"];
    let cut = endings.iter().find_map(|ending| word.strip_suffix(ending));
    cut.filter(|stem| stem.chars().count() >= STEM_LETTERS).unwrap_or(word)
}

#[cfg(test)]
mod tests;
