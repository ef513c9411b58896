//! `/ws/transcription`: says that speech is not understood here, as the protocol says such things.

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::json;

use crate::windie::auth::uuid;
use crate::windie::http::reply::Reply;
use crate::windie::serve::Desk;

/// Takes a connection, if it may be taken.
pub(crate) async fn connect(
    State(desk): State<Desk>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(upgrade) = upgrade else { return Reply::new(404, "Not Found").into() };
    match desk.identify(&headers).await {
        Ok(_) => upgrade.on_upgrade(decline),
        Err(refused) => {
            let why = refused.message();
            upgrade.on_upgrade(move |socket| close(socket, close_code::POLICY, why))
        }
    }
}

async fn decline(mut socket: WebSocket) {
    let sorry = "Transcription service not available";
    for message in [
        json!({ "type": "status", "client_id": uuid() }),
        json!({ "type": "error", "message": sorry }),
    ] {
        // Whoever has left already misses nothing.
        let _ = socket.send(Message::Text(message.to_string().into())).await;
    }
    close(socket, close_code::AGAIN, sorry).await;
}

async fn close(mut socket: WebSocket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: Utf8Bytes::from_static(reason) };
    let _ = socket.send(Message::Close(Some(frame))).await;
}
