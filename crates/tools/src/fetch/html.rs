//! HTML as text that a model reads: headings, lists, links, tables and code as in Markdown.
//!
//! The page is taken token by token and never becomes a tree, so that its cost grows with its
//! length and not with its depth, whatever a server sends.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use reqwest::Url;

use crate::blocking::CancelFlag;
use flow::{Flow, Gap};

mod flow;

#[cfg(test)]
mod tests;

/// Bytes that are parsed between two checks for cancellation.
const PARSE_CHUNK_BYTES: usize = 16 * 1024;
/// Longer links are left out.
const LINK_LIMIT: usize = 500;
/// Longer titles too.
const TITLE_LIMIT: usize = 300;

/// A page to read.
#[derive(Debug)]
pub(super) struct Readable {
    pub(super) title: String,
    pub(super) text: String,
}

/// The text of a page; as much as was read when the flag went down.
pub(super) fn readable(html: &str, base: &Url, flag: &CancelFlag) -> Readable {
    let sink = Sink(RefCell::new(Reader::new(base.clone())));
    let tokenizer = Tokenizer::new(sink, TokenizerOpts::default());
    let (input, mut rest) = (BufferQueue::default(), html);
    while !rest.is_empty() && !flag.is_cancelled() {
        let (piece, left) = rest.split_at(rest.floor_char_boundary(PARSE_CHUNK_BYTES));
        input.push_back(StrTendril::from(piece));
        while !input.is_empty() {
            let _ = tokenizer.feed(&input);
        }
        rest = left;
    }
    tokenizer.end();
    let reader = tokenizer.sink.0.into_inner();
    Readable { title: reader.title.finish(), text: reader.flow.finish() }
}

/// The text of a piece of HTML.
pub(crate) fn plain(html: &str, base: &Url) -> String {
    readable(html, base, &CancelFlag::default()).text
}

struct Sink(RefCell<Reader>);

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut reader = self.0.borrow_mut();
        match token {
            Token::CharacterTokens(text) => reader.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => return reader.start(&tag),
            Token::TagToken(tag) => reader.end(&tag.name),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => (),
        }
        TokenSinkResult::Continue
    }
}

struct Reader {
    base: Url,
    flow: Flow,
    title: Flow,
    /// What is being left out until it ends.
    skipped: Option<String>,
    in_title: bool,
    /// Where the text of a link begins, and where the link leads.
    link: Option<(usize, String)>,
    /// Whether the row of a table has a cell already.
    in_row: bool,
}

impl Reader {
    fn new(base: Url) -> Self {
        let (flow, title) = (Flow::default(), Flow::default());
        Self { base, flow, title, skipped: None, in_title: false, link: None, in_row: false }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if !self.in_title {
            self.flow.text(text);
        } else if self.title.len() < TITLE_LIMIT {
            self.title.text(text);
        }
    }

    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        let raw = match &*tag.name {
            "script" => Some(RawKind::ScriptData),
            "style" | "iframe" | "noembed" | "noframes" | "xmp" => Some(RawKind::Rawtext),
            "title" | "textarea" => Some(RawKind::Rcdata),
            _ => None,
        };
        if self.skipped.is_none() {
            self.open(tag);
        }
        raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData)
    }

    fn open(&mut self, tag: &Tag) {
        let name = &*tag.name;
        self.flow.gap(gap(name));
        match name {
            "script" | "style" | "iframe" | "noembed" | "noframes" | "template" | "svg"
                if !tag.self_closing || name != "svg" =>
            {
                self.skipped = Some(name.to_owned());
            }
            "title" => self.in_title = true,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = usize::from(name.as_bytes()[1] - b'0');
                self.flow.mark(&format!("{} ", "#".repeat(level)));
            }
            "li" => self.flow.mark("- "),
            "hr" => self.flow.mark("---"),
            "tr" => self.in_row = false,
            "td" | "th" if self.in_row => self.flow.mark(" | "),
            "td" | "th" => self.in_row = true,
            "pre" => self.flow.open_code(),
            "a" => self.open_link(tag),
            "img" => {
                if let Some(alt) = attribute(tag, "alt").filter(|alt| !alt.trim().is_empty()) {
                    self.flow.text(&format!("[{alt}]"));
                }
            }
            _ => (),
        }
        if matches!(name, "hr" | "br") {
            self.flow.gap(gap(name));
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(skipped) = &self.skipped {
            if skipped == name {
                self.skipped = None;
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "pre" => self.flow.close_code(),
            "a" => self.close_link(),
            _ => (),
        }
        self.flow.gap(gap(name));
    }

    fn open_link(&mut self, tag: &Tag) {
        self.close_link();
        let target = attribute(tag, "href").filter(|href| !href.starts_with('#'));
        let target = target.and_then(|href| self.base.join(href.trim()).ok());
        let web = target.filter(|url| matches!(url.scheme(), "http" | "https"));
        let short = web.filter(|url| url.as_str().len() <= LINK_LIMIT);
        self.link = short.map(|url| (self.flow.len(), url.into()));
    }

    fn close_link(&mut self) {
        if let Some((start, target)) = self.link.take() {
            self.flow.link(start, &target);
        }
    }
}

fn attribute<'a>(tag: &'a Tag, name: &str) -> Option<&'a str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|it| &*it.value)
}

/// The gap between an element and the text around it.
fn gap(name: &str) -> Gap {
    match name {
        "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "p" | "ul" | "ol" | "dl" | "table" | "pre"
        | "blockquote" | "hr" | "section" | "article" | "figure" | "form" => Gap::Paragraph,
        "div" | "li" | "tr" | "dt" | "dd" | "br" | "header" | "footer" | "nav" | "main"
        | "aside" | "address" | "details" | "summary" | "fieldset" | "legend" | "figcaption"
        | "caption" | "option" | "body" | "title" | "center" => Gap::Line,
        _ => Gap::Nothing,
    }
}
