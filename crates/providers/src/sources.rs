//! What a provider's own search contributes to what is shown: what is searched for, and at the end
//! which pages an answer cites. Both stand among the thoughts, so that the answer stays the model's.

use quintet_kernel::model::{Channel, Chunk};

use crate::draft::Pen;

/// How much of one thing is shown.
const LONGEST: usize = 300;
/// How many pages are named.
const MOST: usize = 20;

/// The pages that an answer cites, each once.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pages: Vec<(String, String)>,
}

impl Sources {
    /// Remembers a page.
    pub(crate) fn cite(&mut self, url: &str, title: &str) {
        let known = self.pages.iter().any(|(known, _)| known == url);
        if !url.is_empty() && !known && self.pages.len() < MOST {
            self.pages.push((url.to_owned(), title.to_owned()));
        }
    }

    /// Names them, once the answer is written.
    pub(crate) fn tell(&mut self, pen: &mut Pen, out: &mut Vec<Chunk>) {
        for (url, title) in self.pages.drain(..) {
            let page = format!("{title} {url}");
            pen.say(Channel::Thought, &format!("[cited: {}]\n", line(&page)), out);
        }
    }
}

/// Says that the provider searches for something, or looks at a page.
pub(crate) fn searching(what: &str, pen: &mut Pen, out: &mut Vec<Chunk>) {
    pen.say(Channel::Thought, &format!("[searching the web: {}]\n", line(what)), out);
}

/// A text on one line, cut.
fn line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > LONGEST {
        line.truncate(line.floor_char_boundary(LONGEST));
        line.push('…');
    }
    line
}
