//! Patterns of rules: text with `*` and `?`.

/// A pattern for paths or for commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    /// Any one character except this one.
    One(Option<char>),
    /// Any number of characters except this one.
    Many(Option<char>),
    /// Any number of whole folders.
    Folders,
}

impl Pattern {
    /// For paths: `*` and `?` stay within a name, `**` crosses folders, `**/` may also match nothing.
    pub fn path(text: &str) -> Self {
        let (mut tokens, mut rest) = (Vec::new(), text);
        while let Some(first) = rest.chars().next() {
            let begins = matches!(tokens.last(), None | Some(Token::Char('/') | Token::Folders));
            let (token, length) = match first {
                '*' if begins && rest.starts_with("**/") => (Token::Folders, 3),
                '*' if rest.starts_with("**") => (Token::Many(None), 2),
                '*' => (Token::Many(Some('/')), 1),
                '?' => (Token::One(Some('/')), 1),
                other => (Token::Char(other), other.len_utf8()),
            };
            tokens.push(token);
            rest = &rest[length..];
        }
        Self { tokens }
    }

    /// For commands: `*` matches any text, `?` one character.
    pub fn command(text: &str) -> Self {
        let token = |c| match c {
            '*' => Token::Many(None),
            '?' => Token::One(None),
            other => Token::Char(other),
        };
        Self { tokens: text.chars().map(token).collect() }
    }

    /// True if the whole text matches the pattern.
    ///
    /// Tracks the set of positions in the pattern that the text so far can reach, so the work is
    /// bounded by the product of both lengths, whatever the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let mut places = self.reach(vec![0], true);
        for c in text.chars() {
            let stepped = places.iter().filter_map(|place| self.step(*place, c)).collect();
            places = self.reach(stepped, c == '/');
            if places.is_empty() {
                return false;
            }
        }
        places.contains(&self.tokens.len())
    }

    /// The next position in the pattern after a character was consumed at `place`.
    fn step(&self, place: usize, c: char) -> Option<usize> {
        match *self.tokens.get(place)? {
            Token::Char(wanted) => (wanted == c).then_some(place + 1),
            Token::One(not) => (Some(c) != not).then_some(place + 1),
            Token::Many(not) => (Some(c) != not).then_some(place),
            // `reach` continues from here at the start of a name.
            Token::Folders => Some(place),
        }
    }

    /// The positions that are reached without consuming a character; `begins` is true at the start of a name.
    fn reach(&self, mut places: Vec<usize>, begins: bool) -> Vec<usize> {
        let mut n = 0;
        while let Some(&place) = places.get(n) {
            let skips = match self.tokens.get(place) {
                Some(Token::Many(_)) => true,
                Some(Token::Folders) => begins,
                Some(Token::Char(_) | Token::One(_)) | None => false,
            };
            if skips && !places.contains(&(place + 1)) {
                places.push(place + 1);
            }
            n += 1;
        }
        places.sort_unstable();
        places.dedup();
        places
    }
}

#[cfg(test)]
mod tests;
