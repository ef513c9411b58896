//! Tests of shutdown: in order, in time, and immediately after another signal.

use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::daemon::{World, appears};

/// A request whose body never ends, once the daemon has started to read it.
async fn unfinished_request(address: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         content-length: 9\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100");
    stream
}

#[tokio::test]
async fn another_signal_ends_a_shutdown_that_hangs() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let tool = json!({ "name": "shell", "args": { "command": ": > ready; sleep 600" } });
    client.say(&id, json!([{ "tools": [tool] }, { "text": "done" }])).await;
    appears(&world.workspace().join("ready")).await;
    // The shutdown waits for a request that is being read; the other signal arrives before it times
    // out.
    let address = world.base().strip_prefix("http://").unwrap().to_owned();
    let _request = unfinished_request(&address).await;
    kill_process(world.pid(), Signal::TERM).unwrap();
    let ended = world.signal(Signal::INT);
    // Either signal may be handled first.
    assert!(matches!(ended.code(), Some(130 | 143)), "{ended:?}");
    // The turn was recorded and is completed.
    world.restart();
    assert_eq!(world.integrity(), "ok");
}
