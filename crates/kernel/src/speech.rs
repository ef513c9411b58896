//! The part of an answer that is read aloud: its sentences, without Markdown, code and links.

/// Characters of a sentence; a longer one is cut between words.
const SENTENCE_LIMIT: usize = 400;
/// Words whose full stop does not end a sentence.
const ABBREVIATIONS: &[&str] =
    &["mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "e.g.", "i.e.", "vs.", "approx.", "no.", "fig."];

/// Splits streamed text into sentences.
#[derive(Debug, Default)]
pub struct Sentences {
    /// Text that was not returned yet; at most a line.
    line: String,
    /// Characters in `rest`.
    length: usize,
    /// True if a part of the current line was already returned.
    is_rest: bool,
    /// True within a code block.
    is_code: bool,
}

impl Sentences {
    /// Adds text; returns the sentences that it completes.
    pub fn push(&mut self, text: &str) -> Vec<String> {
        let mut sentences = Vec::new();
        for letter in text.chars() {
            if letter == '\n' {
                sentences.extend(self.finish());
                continue;
            }
            // A code block is not spoken, so it is not buffered either.
            if self.is_code && self.length > SENTENCE_LIMIT {
                continue;
            }
            self.line.push(letter);
            self.length += 1;
            if letter.is_whitespace() && !self.is_code && !is_fence(&self.line) {
                sentences.extend(self.cut());
            }
        }
        sentences
    }

    /// Returns the remaining text; called when the text ends or pauses.
    pub fn finish(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let is_rest = std::mem::take(&mut self.is_rest);
        self.length = 0;
        if !is_rest && is_fence(&line) {
            self.is_code = !self.is_code;
            return None;
        }
        if self.is_code { None } else { spoken(&line, is_rest) }
    }

    fn cut(&mut self) -> Option<String> {
        let is_whole = ends_sentence(self.line.trim_end()) && !is_within_markup(&self.line);
        if !is_whole && self.length < SENTENCE_LIMIT {
            return None;
        }
        let line = std::mem::take(&mut self.line);
        let is_rest = std::mem::replace(&mut self.is_rest, true);
        self.length = 0;
        spoken(&line, is_rest)
    }
}

/// True for a line that begins or ends a code block.
fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

/// True if a link or inline code is not closed yet.
fn is_within_markup(text: &str) -> bool {
    let opened = |open: char, close: char| match (text.rfind(open), text.rfind(close)) {
        (Some(open), Some(close)) => open > close,
        (Some(_), None) => true,
        (None, _) => false,
    };
    text.matches('`').count() % 2 == 1 || opened('[', ']') || text.ends_with("](")
}

fn ends_sentence(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'', ')', ']', '”', '’', '*', '_']);
    if text.ends_with(['!', '?', '…']) {
        return true;
    }
    let Some(before) = text.strip_suffix('.') else { return false };
    let word = text.rsplit(char::is_whitespace).next().unwrap_or(text);
    let word = word.trim_start_matches(['(', '"', '“', '*', '_']).to_lowercase();
    let is_initial = word.chars().count() == 2 && word.starts_with(char::is_alphabetic);
    // The number of a list item is the only word before its dot.
    let is_item = before.trim_start().bytes().all(|letter| letter.is_ascii_digit());
    !is_initial && !is_item && !ABBREVIATIONS.contains(&word.as_str())
}

/// A piece of Markdown as spoken text; `None` if nothing is left to speak.
fn spoken(markdown: &str, is_rest: bool) -> Option<String> {
    let line = markdown.trim();
    let line = if is_rest { line } else { without_marker(line) };
    let text = without_links(line);
    let text = text.replace('|', " , ").replace("__", "").replace("~~", "").replace(['*', '`'], "");
    let mut output = String::with_capacity(text.len());
    for word in text.split_whitespace().filter_map(word) {
        if !matches!(word, "." | "," | ";" | ":" | "!" | "?") {
            output.push(' ');
        }
        output.push_str(word);
    }
    let text = output.trim_matches([' ', ',']);
    text.contains(char::is_alphanumeric).then(|| text.to_owned())
}

/// A line without its Markdown marker of a heading, quotation, list item or row.
fn without_marker(line: &str) -> &str {
    let line = line.trim_start_matches(['#', '>']).trim_start();
    if line.bytes().all(|letter| b"|-:= ".contains(&letter)) {
        return "";
    }
    let item = ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "];
    let rest = item.iter().find_map(|marker| line.strip_prefix(marker));
    rest.unwrap_or(line)
}

/// Replaces links by their names and removes pictures.
fn without_links(line: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(start) = rest.find('[') {
        let after = &rest[start + 1..];
        let link = after.find("](").and_then(|middle| {
            let end = after[middle..].find(')')?;
            Some((&after[..middle], &after[middle + end + 1..]))
        });
        match link {
            Some((name, after)) if !name.contains('[') => {
                let is_picture = rest[..start].ends_with('!');
                text.push_str(if is_picture { &rest[..start - 1] } else { &rest[..start] });
                text.push_str(if is_picture { "" } else { name });
                rest = after;
            }
            Some(_) | None => {
                text.push_str(&rest[..=start]);
                rest = after;
            }
        }
    }
    text + rest
}

/// A word as spoken text; `None` for addresses and HTML.
fn word(word: &str) -> Option<&str> {
    let inner =
        word.trim_matches(['(', ')', '<', '>', '[', ']', '"', '\'', ',', '.', ';', ':', '*', '`']);
    let is_address =
        inner.contains("://") || inner.starts_with("www.") || inner.starts_with("mailto:");
    let is_tag = word.starts_with('<') && word.ends_with('>') && word.len() > 2;
    let mark = word.chars().next_back().filter(|mark| ".,;:!?".contains(*mark));
    match (is_address, is_tag) {
        // A full stop after an address still ends the sentence.
        (true, _) => mark.map(|mark| &word[word.len() - mark.len_utf8()..]),
        (false, true) => None,
        (false, false) => Some(word),
    }
}

#[cfg(test)]
mod tests;
