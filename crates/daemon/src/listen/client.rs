//! The connections of a client of the computer-use protocol.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use quintet_kernel::port::Audio;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// The daemon's address and credentials.
pub(super) struct Address {
    pub(super) url: String,
    pub(super) token: Option<String>,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(address: &Address, path: &str) -> Result<Socket> {
    let url = format!("{}{path}", address.url.replacen("http", "ws", 1));
    let mut request = url.as_str().into_client_request()?;
    if let Some(token) = &address.token {
        let value = HeaderValue::try_from(format!("Bearer {token}"))?;
        request.headers_mut().insert("authorization", value);
    }
    let connected = connect_async(request).await;
    Ok(connected.with_context(|| format!("no daemon answers at {}", address.url))?.0)
}

/// The next message that is JSON. Fails once the daemon closes the connection.
async fn receive(socket: &mut Socket) -> Result<Value> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text)?),
            Some(Ok(Message::Close(frame))) => {
                let reason = frame.map(|frame| frame.reason.to_string()).unwrap_or_default();
                bail!("the daemon closed the connection: {reason}");
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error.into()),
            None => bail!("the daemon closed the connection"),
        }
    }
}

/// The connection for queries.
pub(super) struct Client {
    socket: Socket,
    sent: u64,
}

impl Client {
    pub(super) async fn connect(address: &Address, user: &str) -> Result<Self> {
        let mut socket = connect(address, "/ws").await?;
        let hello = json!({ "type": "handshake", "user_id": user });
        socket.send(Message::text(hello.to_string())).await?;
        Ok(Self { socket, sent: 0 })
    }

    /// Sends a message; returns its id.
    pub(super) async fn send(&mut self, kind: &str, payload: Value) -> Result<String> {
        self.sent += 1;
        let id = format!("listen-{}-{}", std::process::id(), self.sent);
        let message = json!({ "id": id, "type": kind, "payload": payload });
        self.socket.send(Message::text(message.to_string())).await?;
        Ok(id)
    }

    pub(super) async fn next(&mut self) -> Result<Value> {
        receive(&mut self.socket).await
    }

    /// The first message that matches; earlier ones are dropped.
    pub(super) async fn until(&mut self, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            let frame = self.next().await?;
            if matches(&frame) {
                return Ok(frame);
            }
        }
    }
}

/// The audio of an `audio-chunk`.
pub(super) fn audio(frame: &Value) -> Option<Audio> {
    let payload = &frame["payload"];
    let bytes = STANDARD.decode(payload["audio"].as_str()?).ok()?;
    let samples = bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
    let rate = u32::try_from(payload["sample_rate"].as_u64()?).ok()?;
    Some(Audio { samples: samples.collect(), rate })
}

/// The connection for audio.
pub(super) struct Transcription(Socket);

impl Transcription {
    pub(super) async fn open(address: &Address) -> Result<Self> {
        connect(address, "/ws/transcription").await.map(Self)
    }

    pub(super) async fn push(&mut self, audio: &Audio) -> Result<()> {
        let metadata = json!({ "sampleRate": audio.rate }).to_string();
        let mut frame = u32::try_from(metadata.len())?.to_le_bytes().to_vec();
        frame.extend_from_slice(metadata.as_bytes());
        frame.extend(audio.samples.iter().flat_map(|sample| sample.to_le_bytes()));
        self.0.send(Message::binary(frame)).await?;
        Ok(())
    }

    pub(super) async fn next(&mut self) -> Result<Value> {
        receive(&mut self.0).await
    }
}
