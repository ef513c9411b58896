//! Accepts editors and serves each connection in a task of its own.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::model::ModelRef;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinSet;

use super::connection::{Connection, SendQueue};
use super::wire;
use crate::dialect::Services;
use crate::model_list::ModelList;
use crate::transport::connection_limit::{ConnectionLimit, ConnectionPermit};
use crate::transport::uds::{Lines, Socket};

/// Batches of messages that may wait for a client that does not read.
const QUEUE_CAPACITY: usize = 4;
/// Delay after accepting a connection failed.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// State that all connections share.
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) default_model: ModelRef,
    pub(super) models: ModelList,
}

/// Serves editors until the daemon closes; pending output is still sent.
pub(super) async fn run(socket: Socket, services: Arc<Services>, default_model: ModelRef) {
    let closing = services.closing.clone();
    let models = ModelList::new(Arc::clone(&services.models));
    let app = Arc::new(AppState { services, default_model, models });
    let (mut connections, mut tasks) = (ConnectionLimit::new(), JoinSet::new());
    let known = Arc::clone(&app);
    tasks.spawn(async move { drop(known.models.refresh().await) });
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = socket.accept() => match accepted {
                Ok((stream, _)) => match connections.admit().await.map(ConnectionPermit::new) {
                    Some(permit) => {
                        tasks.spawn(serve_connection(stream, Arc::clone(&app), permit));
                    }
                    None => tracing::warn!("an editor was refused: too many connections"),
                },
                Err(error) => {
                    tracing::error!(%error, "accepting an editor's connection failed");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
        }
    }
    // No new client can connect from here on.
    drop(socket);
    while tasks.join_next().await.is_some() {}
}

/// One connection, from its first line to its last.
async fn serve_connection(stream: UnixStream, app: Arc<AppState>, permit: ConnectionPermit) {
    let (reader, writer) = stream.into_split();
    let (sender, queue) = mpsc::channel(QUEUE_CAPACITY);
    let mut connection = Connection::new(app, SendQueue::new(sender), permit);
    let receiving = async move {
        connection.run(Lines::new(reader, wire::MESSAGE_BYTES_LIMIT)).await;
        connection.finish().await;
    };
    tokio::join!(receiving, write(queue, writer));
}

/// Writes queued messages until the queue closes or the client disconnects.
async fn write(mut queue: Receiver<Vec<u8>>, mut writer: OwnedWriteHalf) {
    while let Some(bytes) = queue.recv().await {
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
