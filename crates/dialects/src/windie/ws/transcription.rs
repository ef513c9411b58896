//! `/ws/transcription`: audio in, transcripts out.
//!
//! A frame that cannot be read is ignored with a warning. When transcription fails, the client is sent the
//! reason and the connection is closed.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use quintet_kernel::port::{BoxFuture, SenseError, TranscriptionStream};
use serde_json::{Value, json};

use crate::transport::ws::{Gone, Heartbeat, close, send};
use crate::windie::auth::uuid;
use crate::windie::http::reply::Reply;
use crate::windie::serve::AppState;
use crate::windie::wire::audio::{Control, frame, transcript};

/// The largest message that is read: two minutes of audio at 16 kHz.
const MESSAGE_LIMIT: usize = 4 * 1024 * 1024;
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The longest time without a message or an answer to a ping.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);

/// Accepts a connection with a valid token.
pub(crate) async fn connect(
    State(app): State<AppState>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else { return Reply::new(404, "Not Found").into_response() };
    let upgrade = upgrade.max_message_size(MESSAGE_LIMIT).max_frame_size(MESSAGE_LIMIT);
    match app.identify(&headers).await {
        Ok(_) => upgrade.on_upgrade(|socket| serve(app, headers, socket)),
        Err(refused) => {
            let why = refused.message();
            upgrade.on_upgrade(move |mut socket| async move {
                close(&mut socket, close_code::POLICY, why).await;
            })
        }
    }
}

async fn serve(app: AppState, headers: HeaderMap, mut socket: WebSocket) {
    let status = json!({ "type": "status", "client_id": uuid() });
    if send(&mut socket, text(&status)).await.is_err() {
        return;
    }
    match app.ports.transcriber.open() {
        Ok(stream) => {
            // A client that left needs no answer.
            let _ = transcribe(&app, &headers, &mut socket, &*stream).await;
        }
        Err(error) => {
            let _ = fail(&mut socket, &error).await;
        }
    }
}

/// Moves audio in and transcripts out until one side ends.
async fn transcribe(
    app: &AppState,
    headers: &HeaderMap,
    socket: &mut WebSocket,
    stream: &dyn TranscriptionStream,
) -> Result<(), Gone> {
    let closing = app.ports.closing.clone();
    let mut heartbeat = Heartbeat::new(PING_INTERVAL, SILENCE_TIMEOUT);
    // The work of the last frame. The next one is read when it is done, which slows down fast clients.
    let mut pending: Option<BoxFuture<'_, ()>> = None;
    loop {
        tokio::select! {
            () = closing.cancelled() => {
                close(socket, close_code::AWAY, "shutting down").await;
                return Ok(());
            }
            message = socket.recv(), if pending.is_none() => {
                heartbeat.alive();
                match message {
                    Some(Ok(Message::Binary(bytes))) => pending = audio(stream, &bytes),
                    Some(Ok(Message::Text(message))) => pending = control(stream, &message),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(()),
                }
            }
            () = done(&mut pending) => heartbeat.alive(),
            next = stream.next() => match next {
                Some(Ok(next)) => send(socket, text(&transcript(&next))).await?,
                Some(Err(error)) => return fail(socket, &error).await,
                None => return Ok(()),
            },
            is_there = heartbeat.due() => {
                let revoked = app.identify(headers).await.is_err_and(|refused| refused.is_final());
                if revoked || !is_there {
                    close(socket, close_code::POLICY, "").await;
                    return Ok(());
                }
                send(socket, Message::Ping(Default::default())).await?;
            }
        }
    }
}

/// Waits for the pending work; for ever, if there is none.
async fn done(pending: &mut Option<BoxFuture<'_, ()>>) {
    match pending {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
    *pending = None;
}

fn audio<'a>(stream: &'a dyn TranscriptionStream, bytes: &[u8]) -> Option<BoxFuture<'a, ()>> {
    match frame(bytes) {
        Ok(audio) => Some(Box::pin(async move {
            if let Err(error) = stream.push(audio).await {
                tracing::warn!(%error, "a frame of audio was ignored");
            }
        })),
        Err(reason) => {
            tracing::warn!(reason, "a frame of audio was ignored");
            None
        }
    }
}

fn control<'a>(stream: &'a dyn TranscriptionStream, message: &str) -> Option<BoxFuture<'a, ()>> {
    match serde_json::from_str(message) {
        Ok(Control::StartOver) => Some(stream.start_over()),
        Ok(Control::SetLangs { source_language }) => {
            Some(stream.set_language(source_language.unwrap_or_default()))
        }
        Err(error) => {
            tracing::warn!(%error, "a control message was ignored");
            None
        }
    }
}

async fn fail(socket: &mut WebSocket, error: &SenseError) -> Result<(), Gone> {
    tracing::warn!(%error, "transcription ended");
    send(socket, text(&json!({ "type": "error", "message": error.to_string() }))).await?;
    close(socket, close_code::AGAIN, "Transcription service not available").await;
    Ok(())
}

fn text(message: &Value) -> Message {
    Message::Text(message.to_string().into())
}
