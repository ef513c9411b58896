//! Splits a file into passages: paragraphs with their line numbers and headings.

/// Maximum length of a passage, in lines and bytes. A line is never split.
const LINES_LIMIT: usize = 40;
const BYTES_LIMIT: usize = 4096;

/// A paragraph, or a part of a long one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Passage<'a> {
    /// The first line, counted from 1.
    pub(crate) line_start: usize,
    pub(crate) line_end: usize,
    pub(crate) text: &'a str,
    /// The headings above the passage.
    pub(crate) headings: String,
}

/// Splits a text at empty lines and before headings. A heading belongs to the paragraph below it.
pub(crate) fn split(text: &str) -> Vec<Passage<'_>> {
    let mut splitter = Splitter { text, open: None, headings: Vec::new(), done: Vec::new() };
    let (mut fenced, mut at) = (false, 0);
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let (number, trimmed) = (n + 1, line.trim());
        let fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        let heading = heading(trimmed).filter(|_| !fenced);
        if let Some((level, title)) = heading {
            splitter.close();
            splitter.headings.retain(|(above, _)| *above < level);
            splitter.headings.push((level, title));
        }
        if trimmed.is_empty() && !fenced {
            splitter.pause();
        } else {
            splitter.add(number, at, at + line.len(), heading.is_some());
        }
        fenced ^= fence;
        at += line.len();
    }
    splitter.close();
    splitter.done
}

struct Splitter<'a> {
    text: &'a str,
    open: Option<OpenPassage>,
    headings: Vec<(usize, &'a str)>,
    done: Vec<Passage<'a>>,
}

/// The lines and bytes of a passage that has not ended yet.
struct OpenPassage {
    lines: (usize, usize),
    bytes: (usize, usize),
    /// True while the passage consists of a heading only.
    heading: bool,
}

impl Splitter<'_> {
    /// Ends a paragraph. A heading stays open and joins the paragraph after it.
    fn pause(&mut self) {
        if self.open.as_ref().is_some_and(|open| !open.heading) {
            self.close();
        }
    }

    fn add(&mut self, line: usize, start: usize, end: usize, heading: bool) {
        let full = |open: &OpenPassage| {
            line - open.lines.0 >= LINES_LIMIT
                || (end - open.bytes.0 > BYTES_LIMIT && !open.heading)
        };
        if self.open.as_ref().is_some_and(full) {
            self.close();
        }
        match &mut self.open {
            Some(open) => {
                (open.lines.1, open.bytes.1) = (line, end);
                open.heading = false;
            }
            None => {
                self.open = Some(OpenPassage { lines: (line, line), bytes: (start, end), heading })
            }
        }
    }

    fn close(&mut self) {
        if let Some(OpenPassage { lines, bytes, .. }) = self.open.take() {
            let headings: Vec<&str> = self.headings.iter().map(|(_, title)| *title).collect();
            self.done.push(Passage {
                line_start: lines.0,
                line_end: lines.1,
                text: self.text[bytes.0..bytes.1].trim_end(),
                headings: headings.join("\n"),
            });
        }
    }
}

/// The level and title of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let spaced = title.is_empty() || title.starts_with([' ', '\t']);
    ((1..=6).contains(&level) && spaced).then(|| (level, title.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, usize, &str, &str)]) {
        let got = split(text);
        let got: Vec<_> =
            got.iter().map(|p| (p.line_start, p.line_end, p.text, p.headings.as_str())).collect();
        assert_eq!(got, expected, "{text:?}");
    }

    #[test]
    fn paragraphs_have_their_lines_and_headings() {
        check("one\ntwo\n\n\nthree", &[(1, 2, "one\ntwo", ""), (5, 5, "three", "")]);
        check(
            "# A\n\ntext\n## B\nmore\n# C\n",
            &[(1, 3, "# A\n\ntext", "A"), (4, 5, "## B\nmore", "A\nB"), (6, 6, "# C", "C")],
        );
        check("\r\n grüße \r\n\r\n日本\r\n", &[(2, 2, " grüße", ""), (4, 4, "日本", "")]);
        check("", &[]);
        check("#hash\n", &[(1, 1, "#hash", "")]);
    }

    #[test]
    fn code_stays_together() {
        check("```\na\n\n# b\n```\n\nc", &[(1, 5, "```\na\n\n# b\n```", ""), (7, 7, "c", "")]);
    }

    #[test]
    fn long_paragraphs_are_split_and_lose_nothing() {
        let text = "line of text\n".repeat(100);
        let got = split(&text);
        assert_eq!(got.len(), 3);
        assert_eq!((got[1].line_start, got[1].line_end), (41, 80));
        let wide = format!("{}\nshort\n", "x".repeat(10_000));
        assert_eq!(split(&wide).iter().map(|p| p.line_start).collect::<Vec<_>>(), [1, 2]);
    }
}
