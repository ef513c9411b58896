//! Serves one editor: reads its requests, responds, and sends updates of its sessions.

mod files;
mod import;
mod open;
mod prompts;
mod questions;
mod requests;
mod send_queue;

use std::future;
use std::sync::Arc;

use futures_util::future::select_all;
use quintet_kernel::port::{Error as PortError, Follower, ServerPrompt};
use quintet_kernel::{Item, SessionId};
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc::Permit;
use tokio::task::JoinSet;

use super::decode::{self, decode};
use super::encode::{Encoder, Output};
use super::serve::AppState;
use super::wire;
use crate::jsonrpc::{self, Error, Id, InvalidMessage, PeerMessage};
use crate::transport::connection_limit::ConnectionPermit;
use crate::transport::uds::{Line, Lines};

use files::Files;
use prompts::{Done, OpenPrompt};
use questions::SentQuestion;
pub(super) use send_queue::SendQueue;
use send_queue::{Gone, bytes};

/// The connection of one editor.
pub(super) struct Connection {
    app: Arc<AppState>,
    permit: ConnectionPermit,
    link: decode::Link,
    queue: SendQueue,
    /// The sessions that the editor has open.
    sessions: Vec<OpenSession>,
    /// Prompts that are not answered yet.
    prompts: Vec<OpenPrompt>,
    /// Questions that were sent to the editor and are not answered yet.
    questions: Vec<SentQuestion>,
    /// Requests for files of the editor that wait for a response.
    files: Files,
    /// The id of the next request to the editor.
    next_request: u64,
    /// Background work of this connection.
    tasks: JoinSet<Option<Done>>,
    /// The change counter of the servers' prompts when they were last sent to the editor.
    prompt_changes: u64,
}

/// A session that the editor has open.
struct OpenSession {
    follow: Box<dyn Follower>,
    encoder: Encoder,
    /// The folder that the editor opened it in.
    cwd: std::path::PathBuf,
    /// The servers' prompts that were last sent to the editor as commands.
    sent_prompts: Vec<ServerPrompt>,
}

/// Messages for the editor, in this order.
type Messages = Vec<String>;

impl Connection {
    pub(super) fn new(app: Arc<AppState>, queue: SendQueue, permit: ConnectionPermit) -> Self {
        let prompt_changes = app.services.server_prompts.changes();
        Self {
            app,
            permit,
            link: decode::Link::default(),
            queue,
            sessions: Vec::new(),
            prompts: Vec::new(),
            questions: Vec::new(),
            files: Files::new(),
            next_request: 1,
            tasks: JoinSet::new(),
            prompt_changes,
        }
    }

    /// Serves the editor until it disconnects or the daemon shuts down. Its turns continue.
    pub(super) async fn run(&mut self, mut lines: Lines<OwnedReadHalf>) {
        let closing = self.app.services.closing.clone();
        let prompts = Arc::clone(&self.app.services.server_prompts);
        let mut listening = true;
        while listening || !self.sessions.is_empty() {
            let queue = self.queue.clone();
            let sent = tokio::select! {
                line = lines.next(), if listening => match line {
                    Ok(Some(line)) => {
                        self.permit.in_use();
                        self.receive(line).await
                    }
                    Ok(None) | Err(_) => return,
                },
                () = closing.cancelled(), if listening => {
                    listening = false;
                    Ok(())
                }
                () = self.permit.revoked(), if listening => if lines.has_unread() {
                    self.permit.in_use();
                    Ok(())
                } else { return },
                Some(done) = self.tasks.join_next() => match done {
                    Ok(Some(done)) => {
                        let messages = self.finish_task(done).await;
                        queue.send(&messages).await
                    }
                    Ok(None) | Err(_) => Ok(()),
                },
                () = prompts.changed(self.prompt_changes), if listening => {
                    self.prompt_changes = prompts.changes();
                    let messages = self.changed_commands();
                    queue.send(&messages).await
                }
                Some(request) = self.files.next(), if listening => {
                    let message = self.request_file(request);
                    queue.send(&[message]).await
                }
                next = next_items(&mut self.sessions, &queue) => match next {
                    Ok((permit, which, items)) => {
                        let messages = self.on_items(which, items).await;
                        permit.send(bytes(&messages));
                        Ok(())
                    }
                    Err(gone) => Err(gone),
                },
            };
            if sent.is_err() {
                return;
            }
            // Lets the writer run before more is queued.
            tokio::task::yield_now().await;
        }
        let messages = self.respond_to_prompts(|_| true, &Err(shutting_down()));
        let _ = self.queue.send(&messages).await;
    }

    /// Waits for commands that were submitted. The editor has disconnected by now.
    pub(super) async fn finish(mut self) {
        self.files.close(&self.app.services.editors, None);
        drop(self.queue);
        while self.tasks.join_next().await.is_some() {}
    }

    async fn receive(&mut self, line: Line) -> Result<(), Gone> {
        let fault = |error: Error| InvalidMessage { id: Id::Null, error };
        let read = match line {
            Line::TooLong => {
                let why = format!("a message may have at most {} bytes", wire::MESSAGE_BYTES_LIMIT);
                Err(fault(Error::invalid(why)))
            }
            Line::Complete(bytes) => match std::str::from_utf8(&bytes) {
                Ok(text) if text.trim().is_empty() => return Ok(()),
                Ok(text) => jsonrpc::read_peer(text),
                Err(_) => Err(fault(Error::parse("the message is not UTF-8"))),
            },
        };
        match read {
            Err(fault) => self.queue.send(&[jsonrpc::response(&fault.id, &Err(fault.error))]).await,
            Ok(PeerMessage::Response { id, outcome }) => self.answered(&id, outcome).await,
            Ok(PeerMessage::Call(call)) => {
                let outcome = match decode(&mut self.link, &call) {
                    Ok(request) => self.dispatch(call.id.as_ref(), request).await?,
                    Err(error) => Some(Err(error)),
                };
                match (call.id, outcome) {
                    (Some(id), Some(outcome)) => {
                        self.queue.send(&[jsonrpc::response(&id, &outcome)]).await
                    }
                    (None, Some(Err(error))) => {
                        let (method, error) = (call.method, error.message);
                        tracing::debug!(method, error, "a notification was dropped");
                        Ok(())
                    }
                    (Some(_) | None, None) | (None, Some(Ok(_))) => Ok(()),
                }
            }
        }
    }

    /// The messages for new items of a session.
    async fn on_items(&mut self, which: usize, items: NextItems) -> Messages {
        let session = self.sessions[which].encoder.session().clone();
        let items = match items {
            Ok(Some(items)) => items,
            // The daemon is shutting down, or the session was deleted.
            Ok(None) | Err(PortError::NotFound(_)) => {
                return self.drop_session(which, &shutting_down());
            }
            Err(error) => {
                tracing::warn!(%session, %error, "reading the events of a session failed");
                return self.drop_session(which, &requests::rpc_error(&error));
            }
        };
        let mut messages = Vec::new();
        for item in items {
            let outputs = self.encoded(which, &item).await;
            for output in outputs {
                self.output(which, output, &mut messages).await;
            }
        }
        messages
    }

    async fn encoded(&mut self, which: usize, item: &Item) -> Vec<Output> {
        let contents = {
            let required = self.sessions[which].encoder.required_content(item);
            open::contents(&self.app.services, required).await
        };
        self.sessions[which].encoder.encode(item, &contents)
    }

    async fn output(&mut self, which: usize, output: Output, messages: &mut Messages) {
        let encoder = &self.sessions[which].encoder;
        let session = encoder.session().clone();
        match output {
            Output::Update(update) => messages.push(wire::update(&session, &update)),
            Output::Ask(question) => messages.push(self.ask(which, *question).await),
            Output::QuestionClosed(question) => {
                messages.extend(self.withdraw_question(&session, &question))
            }
            Output::TurnEnded(turn, outcome) => {
                messages.extend(self.turn_ended(&session, &turn, outcome));
            }
            Output::Spawned(subagent) => {
                self.app.services.editors.register_subagent(&subagent, &session)
            }
            Output::SettingsChanged => messages.extend(self.settings_changed(which).await),
            Output::Compacted(result) => messages.extend(self.compacted(&session, result)),
            Output::Reverted(turn, result) => {
                messages.extend(self.reverted(&session, &turn, result));
            }
        }
    }

    /// Drops a session that can no longer be followed; its prompts fail.
    fn drop_session(&mut self, which: usize, why: &Error) -> Messages {
        let lost = self.sessions.remove(which);
        let session = lost.encoder.session();
        self.files.close(&self.app.services.editors, Some(session));
        self.respond_to_prompts(|prompt| prompt.session == *session, &Err(why.clone()))
    }

    fn position(&self, session: &SessionId) -> Option<usize> {
        self.sessions.iter().position(|open| open.encoder.session() == session)
    }
}

fn shutting_down() -> Error {
    let message = "the daemon is shutting down; session/load continues where it was";
    Error::new(jsonrpc::INTERNAL_ERROR, message)
}

type NextItems = Result<Option<Vec<Item>>, PortError>;

/// Waits for space in the queue and then for items of any session, so that nothing is read that cannot be
/// sent. Cancel-safe.
async fn next_items<'a>(
    sessions: &mut [OpenSession],
    queue: &'a SendQueue,
) -> Result<(Permit<'a, Vec<u8>>, usize, NextItems), Gone> {
    let permit = queue.permit().await?;
    if sessions.is_empty() {
        drop(permit);
        return future::pending().await;
    }
    let next = sessions.iter_mut().map(|open| open.follow.next());
    let (items, which, _) = select_all(next).await;
    Ok((permit, which, items))
}
