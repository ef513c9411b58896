//! What a server sent, and how a model reads it.

use encoding_rs::{Encoding, UTF_8};
use quintet_kernel::port::ToolOutput;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName};
use reqwest::{Response, StatusCode, Url};

use super::html::{self, Readable};
use super::{Request, connect};
use crate::blocking::CancelFlag;
use crate::show;

/// Types other than `text/…` that are text.
const TEXTS: [&str; 12] = [
    "graphql",
    "javascript",
    "json",
    "jsonl",
    "ndjson",
    "sql",
    "toml",
    "x-javascript",
    "x-ndjson",
    "x-yaml",
    "xml",
    "yaml",
];
/// How far into a page its encoding may be written.
const PRESCAN: usize = 1024;

/// An answer.
#[derive(Debug)]
pub(crate) struct Page {
    url: Url,
    status: StatusCode,
    /// The type without its parameters.
    mime: String,
    charset: Option<String>,
    /// The body's length, as far as it is known.
    length: Option<u64>,
    /// `None` if only the head was requested.
    body: Option<Vec<u8>>,
}

impl Page {
    /// Reads the response, and no more of its body than requested.
    pub(super) async fn read(request: Request, mut response: Response) -> Result<Self, String> {
        let field = |name: HeaderName| Some(response.headers().get(name)?.to_str().ok()?.trim());
        let kind = field(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        let (mime, rest) = kind.split_once(';').unwrap_or((&kind, ""));
        let mut page = Self {
            url: request.url,
            status: response.status(),
            mime: mime.trim().to_owned(),
            charset: charset(rest),
            length: field(CONTENT_LENGTH).and_then(|length| length.parse().ok()),
            body: None,
        };
        if request.most == 0 {
            return Ok(page);
        }
        let packed = field(CONTENT_ENCODING).filter(|packed| *packed != "identity");
        if let Some(packed) = packed {
            return Err(format!("{}: its body is packed ({packed})", page.head()));
        }
        page.check_type()?;
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(connect::cause)? {
            let fits = bytes.len().min(request.most - body.len());
            body.extend_from_slice(&bytes[..fits]);
            if fits < bytes.len() {
                page.length = page.length.filter(|length| *length > request.most as u64);
                page.body = Some(body);
                return Ok(page);
            }
        }
        page.length = Some(body.len() as u64);
        page.body = Some(body);
        Ok(page)
    }

    /// What the model reads.
    pub(crate) fn output(&self, raw: bool, flag: &CancelFlag) -> ToolOutput {
        let text = self.text(raw, flag);
        if self.status.is_client_error() || self.status.is_server_error() {
            return show::failure(&text, &format!("the server says {}", self.status), "page.txt");
        }
        show::output(&text, "page.txt")
    }

    fn text(&self, raw: bool, flag: &CancelFlag) -> String {
        let Some(body) = &self.body else { return self.head() };
        let source = decode(body, self.charset.as_deref(), self.is_html());
        let Readable { title, text } = if self.is_html() && !raw {
            html::readable(&source, &self.url, flag)
        } else {
            Readable { title: String::new(), text: source }
        };
        let title = if title.is_empty() { title } else { format!("\ntitle: {title}") };
        format!("{}{title}\n\n{text}{}", self.head(), self.note(body.len()))
    }

    fn head(&self) -> String {
        let mime = if self.mime.is_empty() { "no type" } else { &self.mime };
        let length = self.length.map_or(String::new(), |length| format!(", {length} bytes"));
        format!("{}\n{}, {mime}{length}", self.url, self.status)
    }

    /// Says that there is more than was read.
    fn note(&self, read: usize) -> String {
        if self.length == Some(read as u64) {
            return String::new();
        }
        format!("\n[only the first {read} bytes were read]\n")
    }

    fn is_html(&self) -> bool {
        matches!(self.mime.as_str(), "text/html" | "application/xhtml+xml")
    }

    fn check_type(&self) -> Result<(), String> {
        let kind = self.mime.split_once('/');
        let is_text = kind.is_none_or(|(family, name)| {
            let suffix = name.rsplit_once('+').map_or(name, |(_, suffix)| suffix);
            family == "text"
                || (family == "application" || name != suffix) && TEXTS.contains(&suffix)
        });
        if is_text {
            Ok(())
        } else {
            Err(format!("{}: not a text, so nothing was read", self.head()))
        }
    }
}

/// The charset among a type's parameters, or in a piece of HTML.
fn charset(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("charset=")?;
    let rest = rest.trim_start_matches(['"', '\'']);
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c));
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}

/// Decodes the body: by the server's charset, else the page's, else as UTF-8.
fn decode(body: &[u8], charset: Option<&str>, is_html: bool) -> String {
    let start = || String::from_utf8_lossy(&body[..body.len().min(PRESCAN)]).to_ascii_lowercase();
    let inside = || is_html.then(start).and_then(|start| self::charset(&start));
    let label = charset.map(str::to_owned).or_else(inside);
    let encoding = label.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}
