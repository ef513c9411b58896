//! Splits a command line into simple commands, roughly as a shell does.
//!
//! Quotes are honoured, so that a word in a commit message is not taken for a command; commands in
//! `$(…)`, backticks, `<(…)` and groups are found. Expansions are left as they are.

use std::iter::Peekable;
use std::mem;
use std::str::Chars;

/// A program and its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<String>,
    /// Its input is another command's output.
    pub(super) piped: bool,
    /// Another command is written inside of it.
    pub(super) opens: bool,
    /// It writes to a file by `>`; those are its words as `>path`.
    pub(super) writes: bool,
}

/// The simple commands of a command line, those inside of others too.
pub(super) fn split(command: &str) -> Vec<Simple> {
    let mut splitter = Splitter {
        rest: command.chars().peekable(),
        word: None,
        simple: Simple::default(),
        outer: Vec::new(),
        done: Vec::new(),
    };
    splitter.run();
    splitter.done
}

struct Splitter<'a> {
    rest: Peekable<Chars<'a>>,
    word: Option<String>,
    simple: Simple,
    /// The commands inside of which the present one is written.
    outer: Vec<Outer>,
    done: Vec<Simple>,
}

struct Outer {
    simple: Simple,
    /// The character that ends what is inside.
    end: char,
    /// Whether that is inside double quotes, which then go on.
    quoted: bool,
}

impl Splitter<'_> {
    fn run(&mut self) {
        while let Some(c) = self.rest.next() {
            match c {
                '\'' => self.quoted('\''),
                '"' => self.quoted('"'),
                '\\' => self.escaped(),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '>' => self.redirect(),
                '`' | ')' if self.outer.last().is_some_and(|outer| outer.end == c) => self.close(),
                '`' => self.open('`', false),
                '(' => self.open(')', false),
                ')' | ';' | '\n' => self.end_command(false),
                '|' => self.pipe(),
                '&' if self.rest.peek() == Some(&'>') => self.end_word(),
                '&' => self.end_command(false),
                c if c.is_whitespace() => self.end_word(),
                c => self.push(c),
            }
        }
        self.end_command(false);
        while let Some(outer) = self.outer.pop() {
            self.simple = outer.simple;
            self.end_command(false);
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
                '\\' if quote == '"' => self.escaped(),
                // The quotes go on when what is inside of them is closed.
                '`' if quote == '"' => return self.open('`', true),
                '(' if quote == '"' && self.after_dollar() => return self.open(')', true),
                c => self.push(c),
            }
        }
    }

    fn after_dollar(&self) -> bool {
        self.word.as_deref().is_some_and(|word| word.ends_with('$'))
    }

    /// A command begins inside of this one, or a group that stands for it.
    fn open(&mut self, end: char, quoted: bool) {
        self.end_word();
        let mut simple = mem::take(&mut self.simple);
        simple.opens = !simple.words.is_empty();
        self.simple.piped = simple.piped && !simple.opens;
        self.outer.push(Outer { simple, end, quoted });
    }

    fn close(&mut self) {
        self.end_command(false);
        if let Some(outer) = self.outer.pop() {
            self.simple = outer.simple;
            if outer.quoted {
                self.quoted('"');
            }
        }
    }

    fn pipe(&mut self) {
        let either = self.rest.next_if_eq(&'|').is_some();
        self.rest.next_if_eq(&'&');
        self.end_command(!either);
    }

    /// `>`, `>>`, `>|`, `>&` and where they lead, as one word; a descriptor before it is dropped.
    fn redirect(&mut self) {
        let descriptor = self.word.take_if(|word| word.chars().all(|c| c.is_ascii_digit()));
        drop(descriptor);
        self.end_word();
        while self.rest.next_if(|c| matches!(c, '>' | '|')).is_some() {}
        if self.rest.next_if_eq(&'&').is_some() {
            while self.rest.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
            return;
        }
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let mut target = String::from(">");
        while let Some(c) = self.rest.next_if(|c| !c.is_whitespace() && !";|&()`".contains(*c)) {
            if !matches!(c, '"' | '\'') {
                target.push(c);
            }
        }
        if target != ">/dev/null" {
            self.simple.writes = true;
            self.simple.words.push(target);
        }
    }

    fn end_word(&mut self) {
        self.simple.words.extend(self.word.take());
    }

    fn end_command(&mut self, pipes_on: bool) {
        self.end_word();
        let next = Simple { piped: pipes_on, ..Simple::default() };
        let simple = mem::replace(&mut self.simple, next);
        if !simple.words.is_empty() {
            self.done.push(simple);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: &str) {
        let show = |simple: &Simple| {
            let pipe = if simple.piped { "| " } else { "" };
            let opens = if simple.opens { " (" } else { "" };
            format!("{pipe}{}{opens}", simple.words.join("·"))
        };
        let got: Vec<_> = split(command).iter().map(show).collect();
        assert_eq!(got.join(" ; "), expected, "{command}");
    }

    #[test]
    fn commands_are_split_as_a_shell_would() {
        check("ls -la", "ls·-la");
        check("a && b || c; d & e\nf", "a ; b ; c ; d ; e ; f");
        check("a | b |& c || d", "a ; | b ; | c ; d");
        check("git commit -m 'a; rm -rf /' # && x", "git·commit·-m·a; rm -rf /");
        check(r#"echo "a; b" \; 'it'"'"'s'"#, "echo·a; b·;·it's");
        check("(cd x && make)", "cd·x ; make");
        check("echo '' x", "echo··x");
        check("", "");
    }

    #[test]
    fn commands_inside_of_others_are_found() {
        check("echo $(rm x) y", "rm·x ; echo·$·y (");
        check("echo \"a $(rm x)\"; b", "rm·x ; echo·a $· ( ; b");
        check("echo \"$(a \"$(b)\" c)d\"; e", "b ; a·$··c ( ; echo·$·d ( ; e");
        check("echo `rm x`; b", "rm·x ; echo ( ; b");
        check("echo \"`rm x`\" b", "rm·x ; echo···b (");
        check("bash <(curl u)", "curl·u ; bash·< (");
        check("echo '$(rm x)'", "echo·$(rm x)");
        check("a | (b; c) | d", "a ; | b ; c ; | d");
        check("echo $(a", "a ; echo·$ (");
    }

    #[test]
    fn redirects_are_words_of_their_own() {
        check("a >b", "a·>b");
        check("a >> \"b\" c", "a·>b·c");
        check("a 2>&1 >/dev/null", "a");
        check("a &> b", "a·>b");
        check("a x2> b; c", "a·x2·>b ; c");
    }

    #[test]
    fn nothing_panics_on_what_is_no_command() {
        for odd in ["'", "\"", "\\", "$(", "`", ">", "|", "&", "a >&", "((", "\"$(\"", "é>'", "&>"]
        {
            split(odd);
        }
    }
}
