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
/// How long to leave the socket alone after it failed.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How the dialect is set up.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The model of sessions that name none.
    pub default_model: ModelRef,
    /// Where sessions may be saved.
    pub folders: Folders,
    /// How many tokens of its terminal a client may tell a model with each query.
    pub context_tokens: u64,
    /// How long a question stands, in milliseconds; for ever if not given.
    pub answer_within_ms: Option<u64>,
}

/// What all connections share.
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) settings: Settings,
    /// The models that can be chosen.
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
                    tracing::error!(%error, "accepting a connection on the terminal socket failed and is tried again");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
        }
    }
    // No new client connects from here on.
    drop(socket);
    while tasks.join_next().await.is_some() {}
}

/// Tells a client that there are too many connections. What it has sent is read first: a socket that is
/// closed with something unread in it gives the client an error instead of the answer.
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
    let (client_kind, writer) = stream.into_split();
    let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
    let (send_queue, stuck) = SendQueue::new(sender);
    let lines = Lines::new(client_kind, wire::MESSAGE_BYTES_LIMIT);
    let talking = async move {
        connection.run(lines, send_queue, closing).await;
        // Dropped here, which lets the writer come to its end.
        drop(connection);
    };
    let writing = send_queue::write(queue, writer, stuck);
    let mut writing = std::pin::pin!(writing);
    tokio::select! {
        () = talking => writing.as_mut().await,
        // The client is gone.
        () = &mut writing => {}
    }
}
