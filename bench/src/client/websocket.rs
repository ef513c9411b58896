//! A WebSocket without Nagle's algorithm.

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::Turn;
use crate::clock;
use crate::received::{ReceivedAnswer, Wire};

#[derive(Debug)]
pub(crate) struct WebSocket(WebSocketStream<TcpStream>);

impl WebSocket {
    /// Connects to a `ws` address.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let host = url.trim_start_matches("ws://").split('/').next().context("no host")?;
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        let (socket, _) = client_async(url, stream).await?;
        Ok(Self(socket))
    }

    pub(crate) async fn send(&mut self, text: String) -> Result<()> {
        Ok(self.0.send(Message::text(text)).await?)
    }

    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) -> Result<()> {
        Ok(self.0.send(Message::binary(bytes)).await?)
    }

    /// The next text message.
    pub(crate) async fn next(&mut self) -> Result<Utf8Bytes> {
        loop {
            match self.0.next().await.context("the connection was closed")?? {
                Message::Text(text) => return Ok(text),
                Message::Close(why) => bail!("the connection was closed: {why:?}"),
                _ => {}
            }
        }
    }

    /// Sends a message and reads until its turn has ended.
    pub(crate) async fn turn(&mut self, question: String, wire: &'static Wire) -> Result<Turn> {
        let sent = clock::now();
        self.send(question).await?;
        let mut seen = ReceivedAnswer::new(wire);
        while !seen.is_over() {
            seen.frame(self.next().await?.as_bytes());
        }
        Ok(Turn { sent, seen })
    }
}
