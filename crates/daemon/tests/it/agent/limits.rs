//! Limits of messages and connections, and files of messages.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{code, of};
use crate::daemon::World;
use crate::socket::{kinds, stored, text};

const MESSAGE_BYTES_LIMIT: usize = 16 * 1024 * 1024;
const PINGING: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n\
                       [agent]\nping_seconds = 1\nsilence_seconds = 6\n";

#[tokio::test]
async fn a_message_that_is_too_large_closes_only_its_connection() {
    let world = World::start("").await;
    let (mut other, mut socket) = (world.socket().await, world.socket().await);
    let id = other.create(world.workspace()).await;
    let mut ping = r#"{"jsonrpc":"2.0","id":"a","method":"system.ping"}"#.to_owned();
    ping.push_str(&" ".repeat(MESSAGE_BYTES_LIMIT - ping.len()));
    socket.send(&ping).await;
    assert_eq!(socket.frame().await.unwrap()["result"]["pong"], true, "exactly at the limit");
    ping.push(' ');
    socket.send(&ping).await;
    assert_eq!(socket.close_code().await, Some(1009));
    assert_eq!(text(&other.turn(&id, json!([{ "text": "hi" }])).await), "hi");
    world.socket().await.ask("session.list", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_frame_that_is_far_too_large_is_not_read() {
    let world = World::start("").await;
    for bytes in [3 * MESSAGE_BYTES_LIMIT as u64, 1 << 40] {
        let mut socket = raw(&world).await;
        let mut frame = vec![0x81, 0xff];
        frame.extend(bytes.to_be_bytes());
        frame.extend([0; 4 + 1024]);
        socket.write_all(&frame).await.unwrap();
        let mut close = [0; 4];
        socket.read_exact(&mut close).await.unwrap();
        assert_eq!((close[0], u16::from_be_bytes([close[2], close[3]])), (0x88, 1009));
    }
    world.socket().await.ask("session.list", json!({})).await.unwrap();
}

/// A connection on which frames can be written byte by byte.
async fn raw(world: &World) -> TcpStream {
    let address = world.agent().trim_start_matches("ws://").to_owned();
    let mut socket = TcpStream::connect(&address).await.unwrap();
    let hello = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    socket.write_all(hello.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    socket
}

#[tokio::test]
async fn a_client_that_reads_late_is_served_from_the_journal() {
    let world = World::start("").await;
    let (mut quick, mut slow) = (world.socket().await, world.socket().await);
    let id = quick.create(world.workspace()).await;
    slow.ask("events.sync", json!({ "sessionId": id, "lastSequence": 0 })).await.unwrap();
    // More than the buffers between two sockets hold, so that sending stops.
    let line = "word after word ".repeat(1000);
    let frames = quick.turn(&id, json!([{ "deltas": [line], "repeat": 700 }])).await;
    let late = slow.until_notified("agent.turn_complete").await;
    assert!(text(&frames).len() == 16 * 1000 * 700);
    assert!(text(&late) == text(&frames), "not the same text");
    let ids = |frames: &[Value]| -> Vec<Value> {
        stored(frames).iter().map(|event| event["id"].clone()).collect()
    };
    let (late, frames) = (ids(&late), ids(&frames));
    assert_eq!(late, frames[frames.len() - late.len()..], "the rest was synced before");
    quick.ask("model.switch", json!({ "sessionId": id, "model": "fake/other" })).await.unwrap();
    let switched =
        |notification: &Value| notification["params"]["event"]["type"] == "config.model_switch";
    assert_eq!(slow.until(switched).await.pop(), quick.until(switched).await.pop());
}

#[tokio::test]
async fn clients_that_do_not_answer_pings_are_disconnected() {
    let world = World::start(PINGING).await;
    let mut socket = world.socket().await;
    let address = world.agent().trim_start_matches("ws://").to_owned();
    let mut silent = TcpStream::connect(&address).await.unwrap();
    let hello = format!(
        "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    );
    silent.write_all(hello.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let (ended, ()) = tokio::join!(silent.read_to_end(&mut received), socket.pinged(8));
    // The connection may end with a reset.
    drop(ended);
    let head = received.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    assert_eq!(received[head + 4..][..2], [0x89, 0x00], "it was pinged");
    socket.ask("session.list", json!({})).await.unwrap();
}

#[tokio::test]
async fn files_are_stored_with_their_message_or_not_at_all() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let files = json!([
        { "data": "aGVsbG8=", "mimeType": "image/png", "fileName": "a.png" },
        { "data": "data:text/plain;base64,bm90ZQ==", "fileName": "a.png" },
    ]);
    let mut message = json!({ "sessionId": id, "content": "look", "attachments": files });
    message["idempotencyKey"] = "m1".into();
    let first = socket.ask("agent.message", message.clone()).await.unwrap();
    assert_eq!(first["acknowledged"], true);
    let frames = stored(&socket.until_notified("agent.turn_complete").await);
    let sent_again = socket.ask("agent.message", message).await.unwrap();
    assert_eq!(sent_again["acknowledged"], true, "it is acknowledged, but runs only once");
    let added = frames.iter().find(|event| event["type"] == "message.user").unwrap();
    assert_eq!(added["payload"]["imageCount"], 1, "{added}");
    assert_eq!(kinds(&frames).iter().filter(|kind| **kind == "file.attached").count(), 2);
    let requests = world.model.calls();
    assert_eq!(requests.len(), 1);
    let requests = requests[0].to_string();
    assert!(
        requests.contains("data:image/png;base64,aGVsbG8=") && requests.contains("note"),
        "{requests}"
    );
    let bad = json!([{ "data": "no base64!", "mimeType": "image/png" }]);
    let bad = json!({ "sessionId": id, "content": "look", "attachments": bad });
    assert_eq!(code(socket.ask("agent.message", bad).await), -32602);
    socket.say(&id, json!([{ "text": "half", "hang": true }])).await.unwrap();
    world.model.streaming(1).await;
    let file = json!([{ "data": "bmV3", "mimeType": "image/png", "fileName": "b.png" }]);
    let busy = json!({ "sessionId": id, "content": "look", "attachments": file });
    assert_eq!(code(socket.ask("agent.message", busy).await), -32001);
    socket.ask("agent.abort", of(&id)).await.unwrap();
    let events = socket.events(&id, 0).await;
    let attached = kinds(&events).into_iter().filter(|kind| *kind == "file.attached").count();
    assert_eq!(attached, 2, "files of refused messages are not stored");
}

#[tokio::test]
async fn a_message_larger_than_the_context_window_is_refused() {
    let small = "[approval]\nkinds = []\n[verify]\nauto = false\n\
                 [providers.small]\napi = \"demo\"\ncontext_window = 5000\n";
    let world = World::start(small).await;
    let mut socket = world.socket().await;
    let params = json!({ "workingDirectory": world.workspace(), "model": "small/demo" });
    let created = socket.ask("session.create", params).await.unwrap();
    let id = created["sessionId"].as_str().unwrap();
    let content = "word ".repeat(20_000);
    let too_long = json!({ "sessionId": id, "content": content });
    let refused = socket.ask("agent.message", too_long).await.unwrap_err();
    assert_eq!(
        (&refused["code"], &refused["data"]["contextLimit"]),
        (&json!(-32002), &json!(5000))
    );
    let fits = json!({ "sessionId": id, "content": "hello" });
    assert_eq!(socket.ask("agent.message", fits).await.unwrap()["acknowledged"], true);
    socket.until_notified("agent.turn_complete").await;
    // The context window of this model is not known.
    let id = socket.create(world.workspace()).await;
    let too_long = json!({ "sessionId": id, "content": "word ".repeat(1_000_000) });
    let refused = socket.ask("agent.message", too_long).await.unwrap_err();
    assert_eq!(refused["code"], -32002, "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("1250000 tokens"), "{refused}");
}
