//! Shows the searches of a provider: each query, and at the end the pages that an answer cites.
//! Both are written to the channel of thoughts, so that the answer contains only the model's text.

use quintet_kernel::model::{Channel, Chunk};

use crate::answer_parser::OutputWriter;

/// Maximum length of a shown query or page, in characters.
const TEXT_LENGTH_LIMIT: usize = 300;
/// Maximum number of listed pages.
const PAGES_LIMIT: usize = 20;

/// The pages that an answer cites, each once.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pages: Vec<(String, String)>,
}

impl Sources {
    /// Adds a page.
    pub(crate) fn cite(&mut self, url: &str, title: &str) {
        let known = self.pages.iter().any(|(known, _)| known == url);
        if !url.is_empty() && !known && self.pages.len() < PAGES_LIMIT {
            self.pages.push((url.to_owned(), title.to_owned()));
        }
    }

    /// Writes the list of pages, after the answer.
    pub(crate) fn write_list(&mut self, writer: &mut OutputWriter, out: &mut Vec<Chunk>) {
        for (url, title) in self.pages.drain(..) {
            let page = format!("{title} {url}");
            writer.write(Channel::Thought, &format!("[cited: {}]\n", line(&page)), out);
        }
    }
}

/// Writes that the provider searches for something or reads a page.
pub(crate) fn write_search(what: &str, writer: &mut OutputWriter, out: &mut Vec<Chunk>) {
    writer.write(Channel::Thought, &format!("[searching the web: {}]\n", line(what)), out);
}

/// A text on one line, shortened.
fn line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > TEXT_LENGTH_LIMIT {
        line.truncate(line.floor_char_boundary(TEXT_LENGTH_LIMIT));
        line.push('…');
    }
    line
}
