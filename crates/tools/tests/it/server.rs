//! A web server on this machine that says what a test wants.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The bytes of a whole answer, by path; after them the connection is closed, or with `None` is
/// kept open in silence.
type Answer = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start(
        answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let (mut tasks, heard) = (JoinSet::new(), asked.clone());
        tasks.spawn(async move {
            let mut talks = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                talks.spawn(talk(stream, answer.clone(), heard.clone()));
            }
        });
        Self { address, asked, _tasks: tasks }
    }

    /// What was asked, head by head.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn talk(mut stream: TcpStream, answer: Arc<Answer>, asked: Arc<Mutex<Vec<String>>>) {
    let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => head.extend_from_slice(&buffer[..read]),
            _ => return,
        }
        // This is how TLS begins.
        if head.starts_with(b"\x16") {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return;
        }
    }
    let head = String::from_utf8(head).unwrap();
    let path = head.split_whitespace().nth(1).unwrap().to_owned();
    asked.lock().unwrap().push(head);
    match answer(&path) {
        Some(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        None => std::future::pending().await,
    }
}

/// An answer with this head and body.
pub(crate) fn answer(status: &str, head: &str, body: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{head}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    Some(bytes)
}
