//! Splits a command line into simple commands, roughly as a shell does.
//!
//! Quotes are honoured, so that a word in a commit message is not taken for a command; commands in
//! `$(…)`, backticks, `<(…)` and groups are found. Expansions are not evaluated. Anything that
//! makes the line do more than its simple commands one by one makes the result unsure.

use std::iter::Peekable;
use std::mem;
use std::str::Chars;

/// A command line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The simple commands, those inside of others too.
    pub(super) commands: Vec<Simple>,
    /// Whether a shell is certain to see the same, and nothing more.
    pub(super) sure: bool,
}

/// A program and its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    /// Redirections are the last of them, as `>path` and `<path`.
    pub(super) words: Vec<String>,
    /// The input is another command's output.
    pub(super) piped: bool,
    /// Another command is written inside of it.
    pub(super) opens: bool,
    /// The command writes to a file by `>`.
    pub(super) writes: bool,
}

/// Splits a command line.
pub(super) fn split(command: &str) -> Line {
    let mut splitter = Splitter::new(command);
    splitter.run();
    let Splitter { mut done, sure, has_text, .. } = splitter;
    if has_text {
        // Quotes in a here-document have no meaning, so the rest could be parsed wrongly. Each line is parsed
        // separately.
        for line in command.lines() {
            let mut splitter = Splitter::new(line);
            splitter.run();
            done.extend(splitter.done);
        }
    }
    Line { commands: done, sure }
}

struct Splitter<'a> {
    rest: Peekable<Chars<'a>>,
    word: Option<String>,
    /// The sign of a redirection whose target is the next word.
    target: Option<char>,
    redirects: Vec<String>,
    simple: Simple,
    /// The commands inside of which the present one is written.
    outer: Vec<Outer>,
    done: Vec<Simple>,
    sure: bool,
    /// Whether some of it is the text after `<<`.
    has_text: bool,
}

struct Outer {
    simple: Simple,
    redirects: Vec<String>,
    /// The character that ends what is inside.
    end: char,
    /// Whether that is inside double quotes, which then go on.
    quoted: bool,
}

impl<'a> Splitter<'a> {
    fn new(command: &'a str) -> Self {
        Self {
            rest: command.chars().peekable(),
            word: None,
            target: None,
            redirects: Vec::new(),
            simple: Simple::default(),
            outer: Vec::new(),
            done: Vec::new(),
            sure: true,
            has_text: false,
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '\\' => self.escaped(),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '>' => self.redirect(),
                '<' => self.input(),
                '`' | ')' if self.outer.last().is_some_and(|outer| outer.end == c) => self.close(),
                '`' => self.open('`', false),
                '(' => self.open(')', false),
                ')' | ';' | '\n' => self.end_command(false),
                '|' => self.pipe(),
                '&' if self.rest.peek() == Some(&'>') => self.end_word(),
                '&' => self.end_command(false),
                ' ' | '\t' => self.end_word(),
                c => self.plain(c),
            }
        }
        self.end_command(false);
        while let Some(outer) = self.outer.pop() {
            self.resume(outer);
            self.end_command(false);
        }
    }

    /// An ordinary character, or the beginning of an expansion.
    fn plain(&mut self, c: char) {
        self.sure &= !matches!(c, '$' | '{' | '}') && !c.is_whitespace();
        if c.is_whitespace() {
            // Not for every shell, but more commands are found like this.
            self.end_word();
        } else {
            self.push(c);
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn escaped(&mut self) {
        match self.rest.next() {
            Some('\n') | None => {}
            Some(c) => self.push(c),
        }
    }

    fn quoted(&mut self, quote: char) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            match c {
                c if c == quote => return,
                '\\' if quote == '"' => self.escaped_in_quotes(),
                // The quotes go on when what is inside of them is closed.
                '`' if quote == '"' => return self.open('`', true),
                '(' if quote == '"' && self.after_dollar() => return self.open(')', true),
                c => {
                    self.sure &= quote == '\'' || c != '$';
                    self.push(c);
                }
            }
        }
        self.sure = false;
    }

    /// Between double quotes a backslash stays, unless it takes the meaning from what follows.
    fn escaped_in_quotes(&mut self) {
        if !self.rest.peek().is_some_and(|next| "$`\"\\\n".contains(*next)) {
            self.push('\\');
        }
        self.escaped();
    }

    fn after_dollar(&self) -> bool {
        self.word.as_deref().is_some_and(|word| word.ends_with('$'))
    }

    /// A nested command or a group begins.
    fn open(&mut self, end: char, quoted: bool) {
        self.sure = false;
        self.end_word();
        self.target = None;
        let mut simple = mem::take(&mut self.simple);
        let redirects = mem::take(&mut self.redirects);
        simple.opens = !simple.words.is_empty();
        self.simple.piped = simple.piped && !simple.opens;
        self.outer.push(Outer { simple, redirects, end, quoted });
    }

    fn close(&mut self) {
        self.end_command(false);
        if let Some(outer) = self.outer.pop() {
            let quoted = outer.quoted;
            self.resume(outer);
            if quoted {
                self.quoted('"');
            }
        }
    }

    fn resume(&mut self, outer: Outer) {
        self.sure = false;
        (self.simple, self.redirects) = (outer.simple, outer.redirects);
    }

    fn pipe(&mut self) {
        let either = self.rest.next_if_eq(&'|').is_some();
        self.rest.next_if_eq(&'&');
        self.end_command(!either);
    }

    /// `>`, `>>`, `>|`, `>&`; a descriptor before it is dropped, and so is one after it.
    fn redirect(&mut self) {
        let descriptor = self.word.take_if(|word| word.chars().all(|c| c.is_ascii_digit()));
        drop(descriptor);
        self.end_word();
        while self.rest.next_if(|c| matches!(c, '>' | '|')).is_some() {}
        if self.rest.next_if_eq(&'&').is_some() && self.is_descriptor() {
            return;
        }
        self.target = Some('>');
    }

    /// Whether a descriptor comes next; it is skipped.
    fn is_descriptor(&mut self) -> bool {
        let mut is_one = false;
        while self.rest.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {
            is_one = true;
        }
        let ends = self.rest.peek().is_none_or(|c| c.is_whitespace() || ";|&<>()".contains(*c));
        // The rest is a file name whose beginning is lost.
        self.sure &= ends || !is_one;
        is_one && ends
    }

    /// `<` and what it may be the beginning of.
    fn input(&mut self) {
        match self.rest.peek() {
            // `open` continues from here.
            Some('(') => return self.push('<'),
            Some('<') => {
                (self.sure, self.has_text) = (false, true);
                while self.rest.next_if(|c| matches!(c, '<' | '-')).is_some() {}
            }
            Some('&' | '>') => {
                self.sure = false;
                self.rest.next();
            }
            _ => {}
        }
        self.end_word();
        self.target = Some('<');
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match self.target.take() {
            // The body of a function, or a group; treating anything else as one does no harm.
            None if word == "{" => {
                let piped = self.simple.piped && self.simple.words.is_empty();
                self.end_command(piped);
            }
            None => self.simple.words.push(word),
            Some('>') if word == "/dev/null" => {}
            Some(sign) => {
                self.simple.writes |= sign == '>';
                self.redirects.push(format!("{sign}{word}"));
            }
        }
    }

    fn end_command(&mut self, pipes_on: bool) {
        self.end_word();
        self.sure &= self.target.take().is_none();
        let next = Simple { piped: pipes_on, ..Simple::default() };
        let mut simple = mem::replace(&mut self.simple, next);
        if simple.words.is_empty() && !self.redirects.is_empty() {
            // A redirection alone is one of a command that does nothing.
            simple.words.push(":".to_owned());
        }
        simple.words.append(&mut self.redirects);
        if !simple.words.is_empty() {
            self.done.push(simple);
        }
    }
}

#[cfg(test)]
mod tests;
