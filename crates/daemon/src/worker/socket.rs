//! The WebSocket of the computer-use protocol.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Maximum time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time without a message; the daemon pings every 30 seconds.
const SILENCE_LIMIT: Duration = Duration::from_secs(120);

/// The WebSocket address of a daemon, from its HTTP address.
pub(super) fn address(url: &str) -> Result<String> {
    let url = url.trim_end_matches('/');
    let socket = |scheme: &str, rest: &str| Ok(format!("{scheme}://{rest}/ws"));
    match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
        (Some(rest), _) => socket("ws", rest),
        (None, Some(rest)) => socket("wss", rest),
        (None, None) => bail!("{url}: an address begins with http:// or https://"),
    }
}

/// A connection after the handshake.
pub(super) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    sent: u64,
}

impl Socket {
    /// Connects and sends the handshake.
    pub(super) async fn connect(url: &str, token: Option<&str>, handshake: &Value) -> Result<Self> {
        let mut request = url.into_client_request()?;
        if let Some(token) = token {
            let bearer = HeaderValue::try_from(format!("Bearer {token}"))?;
            request.headers_mut().insert("authorization", bearer);
        }
        let connecting = timeout(CONNECT_TIMEOUT, connect_async(request)).await;
        let (stream, _) = connecting.context("no connection in time")??;
        let mut socket = Self { stream, sent: 0 };
        socket.stream.send(Message::text(handshake.to_string())).await?;
        Ok(socket)
    }

    /// Sends a message with this id.
    pub(super) async fn send(&mut self, id: &str, kind: &str, payload: Value) -> Result<()> {
        let frame = json!({ "id": id, "type": kind, "payload": payload });
        Ok(self.stream.send(Message::text(frame.to_string())).await?)
    }

    /// Sends a message with a new id.
    pub(super) async fn send_new(&mut self, kind: &str, payload: Value) -> Result<()> {
        self.sent += 1;
        let id = format!("w-{}", self.sent);
        self.send(&id, kind, payload).await
    }

    /// The next frame. Fails when the connection has ended.
    pub(super) async fn next(&mut self) -> Result<Value> {
        loop {
            let next = timeout(SILENCE_LIMIT, self.stream.next()).await.context("silence")?;
            match next.context("the connection ended")?? {
                Message::Text(text) => return Ok(serde_json::from_str(&text)?),
                Message::Close(frame) => bail!("the daemon closed the connection: {frame:?}"),
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }

    /// Closes the connection.
    pub(super) async fn close(mut self) {
        // The connection may already be closed.
        let _ = timeout(CONNECT_TIMEOUT, self.stream.close(None)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_websocket_address_follows_from_the_http_address() {
        assert_eq!(address("http://a:1/").unwrap(), "ws://a:1/ws");
        assert_eq!(address("https://a").unwrap(), "wss://a/ws");
        assert!(address("a:1").unwrap_err().to_string().contains("http://"));
    }
}
