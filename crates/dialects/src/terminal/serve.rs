//! Accepts clients and serves each connection in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::ModelRef;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::Connection;
use super::files::Folders;
use super::send_queue::{self, SendQueue};
use super::wire;
use crate::dialect::Services;
use crate::jsonrpc::{self, Error, Id};
use crate::model_list::ModelList;
use crate::transport::connection_limit::{ConnectionLimit, ConnectionPermit};
use crate::transport::uds::{Lines, Socket};

/// Messages that may wait for a client that does not read.
const QUEUE_CAPACITY: usize = 4;
/// Delay after accepting a connection failed.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The settings of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The model of sessions that choose none.
    pub default_model: ModelRef,
    /// The folders of saved sessions.
    pub folders: Folders,
    /// The token budget for the terminal context of a query.
    pub context_tokens: u64,
    /// Time to answer a question, in milliseconds; no limit if `None`.
    pub answer_within_ms: Option<u64>,
}

/// State that all connections share.
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) settings: Settings,
    /// The usable models.
    pub(super) models: ModelList,
}

/// Serves clients of a socket until it is cancelled; open turns are still reported.
pub(super) async fn run(socket: Socket, services: Arc<Services>, settings: Settings) {
    let closing = services.closing.clone();
    let models = ModelList::new(Arc::clone(&services.models));
    let app = Arc::new(AppState { services, settings, models });
    let (mut connections, mut tasks) = (ConnectionLimit::new(), JoinSet::new());
    let known = Arc::clone(&app);
    tasks.spawn(async move { drop(known.models.refresh().await) });
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => match connections.admit().await.map(ConnectionPermit::new) {
                    Some(permit) => {
                        let connection = Connection::new(Arc::clone(&app), peer, permit);
                        tasks.spawn(serve_connection(stream, connection, closing.clone()));
                    }
                    None => refuse(&stream),
                },
                Err(error) => {
                    tracing::error!(%error, "accepting a terminal's connection failed");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
        }
    }
    // No new client can connect from here on.
    drop(socket);
    while tasks.join_next().await.is_some() {}
}

/// Sends a client the error that there are too many connections. Its data is read first, because closing a
/// socket with unread data gives the client an error instead of the response.
fn refuse(stream: &UnixStream) {
    let error = Error::new(wire::AGENT_ERROR, "too many connections");
    let line = format!("{}\n", jsonrpc::response(&Id::Null, &Err(error)));
    let _ = stream.try_write(line.as_bytes());
    let mut buffer = [0; 4096];
    while stream.try_read(&mut buffer).is_ok_and(|read| read > 0) {}
}

/// One connection, from its first line to its last.
async fn serve_connection(
    stream: UnixStream,
    mut connection: Connection,
    closing: CancellationToken,
) {
    let (reader, writer) = stream.into_split();
    let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
    let (send_queue, blocked) = SendQueue::new(sender);
    let lines = Lines::new(reader, wire::MESSAGE_BYTES_LIMIT);
    let serving = async move {
        connection.run(lines, send_queue, closing).await;
        // Dropping the connection lets the writer end.
        drop(connection);
    };
    let writing = send_queue::write(queue, writer, blocked);
    let mut writing = std::pin::pin!(writing);
    tokio::select! {
        () = serving => writing.as_mut().await,
        // The client has disconnected.
        () = &mut writing => {}
    }
}
