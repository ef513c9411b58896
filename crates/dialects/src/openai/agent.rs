//! The agent as a model: a request is a turn of a session, which every other protocol shows.

use axum::response::Response;
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::{Cursor, Item};
use serde_json::Map;

use super::decode::chat::ChatRequest;
use super::encode::chat::{ChatCompletion, ChatStream};
use super::encode::turn::TurnReader;
use super::encode::{EndReason, KEEP_ALIVE, Progress};
use super::reply::Reply;
use super::serve::{AppState, CancelOnDrop, KEEP_ALIVE_INTERVAL, event_stream, ok};
use super::start::{NewRun, StartedRun};
use crate::transport::sse::{self, Encode};

/// Handles a request for a chat completion.
pub(super) async fn chat(app: &AppState, request: ChatRequest) -> Result<Response, Reply> {
    let ChatRequest { generation, include_usage } = request;
    let (head, is_stream) = (app.head(&generation.model), generation.stream);
    let run = NewRun { generation, continued: None, data: Map::new(), is_background: false };
    let started = run.start(app).await?;
    let mut answer = Answer::follow(app, started).await.map_err(Reply::after_start)?;
    if !is_stream {
        let mut completion = ChatCompletion::new(head);
        loop {
            answer.next().await?.iter().for_each(|progress| completion.take(progress));
            if let Some(finished) = completion.finish() {
                return finished.map(|body| ok(&body));
            }
        }
    }
    // A failure before the first output is an error response, not the end of a stream.
    let first = loop {
        let progress = answer.next().await?;
        if let Some(Progress::End(end)) = progress.last()
            && let EndReason::Failed(reply) = &end.reason
        {
            return Err(reply.clone());
        }
        if !progress.is_empty() {
            break progress;
        }
    };
    let mut out = Vec::new();
    let mut encoder = ChatStream::begin(head, include_usage, &mut out);
    first.iter().for_each(|progress| encoder.take(progress, &mut out));
    let Answer { follow, reader, cancel } = answer;
    let stream = AgentStream { reader, encoder, cancel };
    Ok(event_stream(sse::body(follow, stream, out, KEEP_ALIVE_INTERVAL)))
}

/// An answer that a client waits for. If it is dropped before its end, the turn is cancelled.
pub(super) struct Answer {
    pub(super) follow: Box<dyn Follower>,
    pub(super) reader: TurnReader,
    pub(super) cancel: CancelOnDrop,
}

impl Answer {
    pub(super) async fn follow(app: &AppState, started: StartedRun) -> Result<Self, Reply> {
        let StartedRun { run, cancel } = started;
        let from = Cursor::after(run.turn_begins - 1);
        let follow = app.services.sessions.follow(&run.session, from).await?;
        let reader = TurnReader::new(run.session, run.turn, run.begins);
        Ok(Self { follow, reader, cancel })
    }

    /// The next progress; may be empty.
    pub(super) async fn next(&mut self) -> Result<Vec<Progress>, Reply> {
        let items = self.follow.next().await.map_err(|error| Reply::from(error).after_start())?;
        let items = items.ok_or_else(|| Reply::from(Error::Closing).after_start())?;
        let progress = items.iter().flat_map(|item| self.reader.take(item)).collect();
        if self.reader.is_over() {
            self.cancel.release();
        }
        Ok(progress)
    }
}

/// A streamed chat completion.
struct AgentStream {
    reader: TurnReader,
    encoder: ChatStream,
    cancel: CancelOnDrop,
}

impl Encode for AgentStream {
    fn encode(&mut self, items: &[Item], out: &mut Vec<u8>) {
        for progress in items.iter().flat_map(|item| self.reader.take(item)) {
            self.encoder.take(&progress, out);
        }
        if self.reader.is_over() {
            self.cancel.release();
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(KEEP_ALIVE);
    }

    fn is_over(&self) -> bool {
        self.encoder.is_over()
    }

    // A stream without an end would look like a complete answer.
    fn closing(&mut self, out: &mut Vec<u8>) {
        self.broken(&Error::Closing, out);
    }

    fn broken(&mut self, error: &Error, out: &mut Vec<u8>) {
        let reply = Reply::server(500, error.to_string()).after_start();
        self.encoder.broken(&reply, out);
    }
}
