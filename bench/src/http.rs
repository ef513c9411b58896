//! A small HTTP/1.1 client on one connection, so that it adds little to the measurements.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use memchr::{memchr, memmem};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 * 1024;

/// A connection.
#[derive(Debug)]
pub(crate) struct Conn {
    stream: TcpStream,
    host: SocketAddr,
    /// Data that was read and not used yet.
    rest: Vec<u8>,
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
struct Head {
    status: u16,
    /// `None` if the body is chunked.
    length: Option<usize>,
}

impl Conn {
    /// Connects.
    pub(crate) async fn open(host: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(host).await.with_context(|| format!("connect {host}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, host, rest: Vec::new() })
    }

    /// Sends a request; an empty body means none.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        let (host, length) = (self.host, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        Ok(self.stream.write_all(request.as_bytes()).await?)
    }

    /// A request and the whole body of its answer.
    pub(crate) async fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Vec<u8>> {
        self.send(method, path, body).await?;
        self.answer().await.with_context(|| format!("{method} {path}"))
    }

    /// A `POST` with one more header, and the whole body of its answer.
    pub(crate) async fn call_with(
        &mut self,
        path: &str,
        (name, value): (&str, &str),
        body: &str,
    ) -> Result<Vec<u8>> {
        let (host, length) = (self.host, body.len());
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\n{name}: {value}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.answer().await.with_context(|| format!("POST {path}"))
    }

    /// The whole body of the answer to the last request.
    pub(crate) async fn answer(&mut self) -> Result<Vec<u8>> {
        let head = self.head().await?;
        let mut body = Vec::new();
        let mut chunks = Chunks::new(head);
        while !chunks.take(&mut self.rest, &mut body)? {
            self.more().await?;
        }
        match head.status {
            200..300 => Ok(body),
            status => bail!("{status} {}", String::from_utf8_lossy(&body)),
        }
    }

    /// The answer to the last request as a stream of lines.
    pub(crate) async fn lines(&mut self) -> Result<Lines> {
        let head = self.head().await?;
        match head.status {
            200 => Ok(Lines { chunks: Chunks::new(head), text: Vec::new(), begun: false }),
            status => bail!("{status} instead of a stream"),
        }
    }

    async fn head(&mut self) -> Result<Head> {
        loop {
            if let Some(end) = memmem::find(&self.rest, b"\r\n\r\n") {
                let head = parse(&self.rest[..end]).context("no HTTP head")?;
                self.rest.drain(..end + 4);
                return Ok(head);
            }
            self.more().await?;
        }
    }

    async fn more(&mut self) -> Result<()> {
        self.rest.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.rest).await? {
            0 => bail!("the connection was closed"),
            _ => Ok(()),
        }
    }
}

fn parse(head: &[u8]) -> Option<Head> {
    let head = str::from_utf8(head).ok()?.to_ascii_lowercase();
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let length = lines.find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map(|length| length.trim().parse()).transpose().ok()?;
    Some(Head { status, length })
}

/// A streamed body, as lines.
#[derive(Debug)]
pub(crate) struct Lines {
    chunks: Chunks,
    text: Vec<u8>,
    begun: bool,
}

impl Lines {
    /// Waits for one read and passes on the lines that it completes; false once the body has ended.
    pub(crate) async fn read(
        &mut self,
        conn: &mut Conn,
        mut line: impl FnMut(&[u8]),
    ) -> Result<bool> {
        // Data may have arrived with the head. The rest of a later read is an incomplete line.
        if self.begun || conn.rest.is_empty() {
            conn.more().await?;
        }
        self.begun = true;
        let over = self.chunks.take(&mut conn.rest, &mut self.text)?;
        let mut start = 0;
        while let Some(end) = memchr(b'\n', &self.text[start..]) {
            line(&self.text[start..start + end]);
            start += end + 1;
        }
        self.text.drain(..start);
        Ok(!over)
    }
}

/// The position in a body.
#[derive(Debug)]
enum Chunks {
    /// This many bytes are left.
    Plain(usize),
    /// This many bytes of the chunk are left; 0 before its size is known.
    Chunk(usize),
    /// The last chunk was read; an empty line follows.
    Last,
}

impl Chunks {
    fn new(head: Head) -> Self {
        head.length.map_or(Self::Chunk(0), Self::Plain)
    }

    /// Moves data of the body; true if the body is complete.
    fn take(&mut self, from: &mut Vec<u8>, to: &mut Vec<u8>) -> Result<bool> {
        let mut bytes = &from[..];
        let over = self.advance(&mut bytes, to)?;
        let used = from.len() - bytes.len();
        from.drain(..used);
        Ok(over)
    }

    fn advance(&mut self, bytes: &mut &[u8], to: &mut Vec<u8>) -> Result<bool> {
        loop {
            match self {
                Self::Plain(0) => return Ok(true),
                Self::Plain(left) | Self::Chunk(left) if *left > 0 => {
                    let (now, later) = bytes.split_at((*left).min(bytes.len()));
                    to.extend_from_slice(now);
                    (*left, *bytes) = (*left - now.len(), later);
                    if *left > 0 {
                        return Ok(false);
                    }
                }
                Self::Plain(_) | Self::Chunk(_) | Self::Last => {
                    let Some(end) = memchr(b'\n', bytes) else { return Ok(false) };
                    let line = bytes[..end].trim_ascii();
                    *bytes = &bytes[end + 1..];
                    match (&self, line) {
                        (Self::Last, _) => return Ok(true),
                        // The line end of the previous chunk.
                        (_, b"") => {}
                        (_, b"0") => *self = Self::Last,
                        (_, size) => {
                            *self = Self::Chunk(usize::from_str_radix(str::from_utf8(size)?, 16)?);
                        }
                    }
                }
            }
        }
    }
}
