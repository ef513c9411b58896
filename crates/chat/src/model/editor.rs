//! An editor for one or more lines.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

/// Maximum length of the text, in bytes.
const TEXT_BYTES_LIMIT: usize = 1024 * 1024;

/// A text and the cursor in it.
#[derive(Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// Byte offset, always between two grapheme clusters.
    cursor: usize,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn set(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    pub(crate) fn clear(&mut self) {
        self.set(String::new());
    }

    /// Inserts text at the cursor. Line ends are normalized and control characters removed.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n").replace('\t', "    ");
        let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        if self.text.len() + text.len() <= TEXT_BYTES_LIMIT {
            self.text.insert_str(self.cursor, &text);
            self.cursor += text.len();
        }
    }

    pub(crate) fn is_first_line(&self) -> bool {
        !self.text[..self.cursor].contains('\n')
    }

    pub(crate) fn is_last_line(&self) -> bool {
        !self.text[self.cursor..].contains('\n')
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Enter => self.insert("\n"),
            KeyCode::Char(letter) if ctrl => self.control(letter),
            KeyCode::Char('b') if alt => self.cursor = self.word_before(),
            KeyCode::Char('f') if alt => self.cursor = self.word_after(),
            KeyCode::Char(letter) if !alt => self.insert(letter.encode_utf8(&mut [0; 4])),
            KeyCode::Left if ctrl || alt => self.cursor = self.word_before(),
            KeyCode::Right if ctrl || alt => self.cursor = self.word_after(),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = self.line_begin(),
            KeyCode::End => self.cursor = self.line_end(),
            KeyCode::Up => self.up(),
            KeyCode::Down => self.down(),
            KeyCode::Backspace if ctrl || alt => self.remove(self.word_before(), self.cursor),
            KeyCode::Backspace => self.remove(self.before(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.after()),
            _ => {}
        }
    }

    fn control(&mut self, letter: char) {
        match letter {
            'a' => self.cursor = self.line_begin(),
            'e' => self.cursor = self.line_end(),
            'b' => self.cursor = self.before(),
            'f' => self.cursor = self.after(),
            'h' => self.remove(self.before(), self.cursor),
            'd' => self.remove(self.cursor, self.after()),
            'w' => self.remove(self.word_before(), self.cursor),
            'u' => self.remove(self.line_begin(), self.cursor),
            'k' => self.remove(self.cursor, self.line_end()),
            'j' => self.insert("\n"),
            _ => {}
        }
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.drain(from..to);
        self.cursor = from;
    }

    fn before(&self) -> usize {
        let last = self.text[..self.cursor].graphemes(true).next_back();
        self.cursor - last.map_or(0, str::len)
    }

    fn after(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.cursor].trim_end();
        text.rfind(char::is_whitespace)
            .map_or(0, |space| space + text[space..].chars().next().map_or(0, char::len_utf8))
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let skipped = rest.len() - rest.trim_start().len();
        let word = rest[skipped..].find(char::is_whitespace).unwrap_or(rest.len() - skipped);
        self.cursor + skipped + word
    }

    fn line_begin(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |end| self.cursor + end)
    }

    fn up(&mut self) {
        let begin = self.line_begin();
        if begin > 0 {
            let column = self.text[begin..self.cursor].graphemes(true).count();
            let above = self.text[..begin - 1].rfind('\n').map_or(0, |end| end + 1);
            self.cursor = self.at_column(above, begin - 1, column);
        }
    }

    fn down(&mut self) {
        let (begin, end) = (self.line_begin(), self.line_end());
        if end < self.text.len() {
            let column = self.text[begin..self.cursor].graphemes(true).count();
            let below = self.text[end + 1..].find('\n').map_or(self.text.len(), |n| end + 1 + n);
            self.cursor = self.at_column(end + 1, below, column);
        }
    }

    fn at_column(&self, begin: usize, end: usize, column: usize) -> usize {
        begin + self.text[begin..end].graphemes(true).take(column).map(str::len).sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
