//! Formats search results for a model.
//!
//! The texts are untrusted. Each is put on its own line and shortened, so that none can imitate the next result or
//! fill the model's context.

const TITLE_LIMIT: usize = 200;
const URL_LIMIT: usize = 2000;
const SNIPPET_LIMIT: usize = 600;
const AGE_LIMIT: usize = 40;

/// The response of an engine.
#[derive(Debug, Default)]
pub(super) struct SearchResults {
    pub(super) hits: Vec<SearchResult>,
    /// What else the model should know.
    pub(super) notes: Vec<String>,
}

/// A page that was found.
#[derive(Debug)]
pub(super) struct SearchResult {
    pub(super) title: String,
    pub(super) url: String,
    pub(super) snippet: String,
    /// When it was written, in whatever words.
    pub(super) age: String,
}

impl SearchResults {
    /// The first results, numbered.
    pub(super) fn shown(&self, query: &str, most: usize) -> String {
        let web =
            |hit: &&SearchResult| hit.url.starts_with("http://") || hit.url.starts_with("https://");
        let hits = self.hits.iter().filter(web).take(most).enumerate();
        let mut blocks: Vec<String> = hits.map(|(index, hit)| hit.shown(index + 1)).collect();
        if blocks.is_empty() {
            blocks.push(format!("nothing was found for {query:?}"));
        }
        blocks.extend(self.notes.iter().map(|note| line(note, SNIPPET_LIMIT)));
        blocks.join("\n\n")
    }
}

impl SearchResult {
    fn shown(&self, number: usize) -> String {
        let mut text = format!("{number}. {}", line(&self.title, TITLE_LIMIT));
        let age = line(&self.age, AGE_LIMIT);
        if !age.is_empty() {
            text.push_str(&format!(" ({age})"));
        }
        for more in [line(&self.url, URL_LIMIT), line(&self.snippet, SNIPPET_LIMIT)] {
            if !more.is_empty() {
                text.push_str(&format!("\n   {more}"));
            }
        }
        text
    }
}

/// A text on one line, at most so many bytes of it.
fn line(text: &str, most: usize) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(blank).filter(|word| !word.is_empty()).collect();
    let mut line = words.join(" ");
    if line.len() > most {
        line.truncate(line.floor_char_boundary(most));
        line.push('…');
    }
    line
}
