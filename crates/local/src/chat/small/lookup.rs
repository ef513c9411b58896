//! What to look up before a small model answers: it takes the first plausible answer for the right one, so the
//! lines that a message is about are put before it.

use serde_json::{Value, json};

/// Words that say nothing about what is asked for: English function words, and words of every workspace.
const COMMON: &str = "\
    about after all and any anything are before between but can class code comment could \
    describe detail did does each every everywhere exist explain file files find first folder \
    for from function give has have here how into its know last like line lines list many mean \
    means method module most much name none not occur off one only out please program project \
    repository say says script should show some such summarize take tell than that the their \
    them then there these they think this those use used uses using variable want was were what \
    when where which who whose why will with without work works workspace would write you your";
/// The most words of one search.
const WORDS_LIMIT: usize = 5;
/// The most lines that are found, so that they are read in seconds.
const LINES_LIMIT: usize = 10;
/// Lines around a match, to see in which definition it stands; the model does not read them.
const CONTEXT_LINES: usize = 12;
/// A word is looked for without its ending if this many letters are left.
const STEM_LETTERS: usize = 4;

/// The search for what a message is about; nothing if it has no word worth looking for.
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

/// The names from code: `load_data`, `loadData`, `TODO`, `main()`.
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

/// The words that matter, without their endings.
fn stems(message: &str) -> Vec<String> {
    let lower = message.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    let mut stems: Vec<String> = Vec::new();
    for word in words.filter(|word| word.chars().count() > 2 && !is_common(word)) {
        // A short word is a part of many others.
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
