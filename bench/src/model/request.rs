//! Reads a request, and records when its first byte and all of it arrived.

use anyhow::{Context, Result, bail};
use memchr::memmem;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::clock;

const READ_BYTES: usize = 64 * 1024;

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    /// When its first byte arrived.
    pub(super) arrived: u64,
    /// When all of it arrived.
    pub(super) read: u64,
}

/// The next request of a connection; `None` if the connection was closed before one.
pub(super) async fn read(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Result<Option<Request>> {
    if rest.is_empty() && more(stream, rest).await? == 0 {
        return Ok(None);
    }
    let arrived = clock::now();
    loop {
        if let Some(end) = memmem::find(rest, b"\r\n\r\n") {
            let head = str::from_utf8(&rest[..end])?.to_ascii_lowercase();
            let path = head.split(' ').nth(1).context("no path")?.to_owned();
            let length = head.split("\r\n").find_map(|line| line.strip_prefix("content-length:"));
            let length = length.map_or(Ok(0), |length| length.trim().parse())?;
            rest.drain(..end + 4);
            while rest.len() < length {
                whole(more(stream, rest).await?)?;
            }
            let after = rest.split_off(length);
            let body = std::mem::replace(rest, after);
            return Ok(Some(Request { path, body, arrived, read: clock::now() }));
        }
        whole(more(stream, rest).await?)?;
    }
}

async fn more(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Result<usize> {
    rest.reserve(READ_BYTES);
    Ok(stream.read_buf(rest).await?)
}

fn whole(read: usize) -> Result<()> {
    if read == 0 {
        bail!("half a request");
    }
    Ok(())
}
