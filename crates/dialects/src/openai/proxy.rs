//! Serves a provider's model directly: the client's messages and tools are passed through, without a
//! session.

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures_util::stream;
use quintet_kernel::RunId;
use quintet_kernel::model::{Chunk, Failure, FailureKind, ModelRef};
use quintet_kernel::port::ModelStream;
use serde_json::Value;

use super::decode::Generation;
use super::decode::chat::ChatRequest;
use super::decode::prompt::prompt;
use super::decode::responses::ResponseRequest;
use super::encode::chat::{ChatCompletion, ChatStream};
use super::encode::model_answer::progress;
use super::encode::response::{self, Response as Encoder};
use super::encode::{End, EndReason, KEEP_ALIVE, Progress};
use super::reply::Reply;
use super::serve::{AppState, KEEP_ALIVE_INTERVAL, event_stream, ok};
use super::wire::seconds;

/// The most bytes that a model may write in one answer.
const OUTPUT_LIMIT: usize = 16 << 20;

/// Handles a request for a chat completion.
pub(super) async fn chat(
    app: &AppState,
    request: ChatRequest,
    model: ModelRef,
) -> Result<Response, Reply> {
    let ChatRequest { generation, include_usage } = request;
    let (head, is_stream) = (app.head(&generation.model), generation.stream);
    let (mut answer, first) = Answer::start(app, generation, model).await?;
    if is_stream {
        let mut out = Vec::new();
        let encoder = ChatStream::begin(head, include_usage, &mut out);
        return Ok(event_stream(answer.body(encoder, &first, out)));
    }
    let mut completion = ChatCompletion::new(head);
    first.iter().for_each(|progress| completion.take(progress));
    loop {
        if let Some(finished) = completion.finish() {
            return finished.map(|body| ok(&body));
        }
        answer.next().await.iter().for_each(|progress| completion.take(progress));
    }
}

/// Handles a request for a response, which is not stored.
pub(super) async fn respond(
    app: &AppState,
    request: ResponseRequest,
    model: ModelRef,
) -> Result<Response, Reply> {
    let ResponseRequest { generation, previous, background, mut echo, .. } = request;
    let needs_agent = |param: &str| {
        let why =
            format!("{param} needs an agent: use the model quintet/{} instead", generation.model);
        Reply::unsupported(param, why)
    };
    if previous.is_some() {
        return Err(needs_agent("previous_response_id"));
    }
    if background {
        return Err(needs_agent("background"));
    }
    echo.insert("store".into(), Value::Bool(false));
    let stamp = app.services.clock.stamp();
    let id = format!("resp_{}", stamp.id::<RunId>());
    let mut encoder = Encoder::new(id, seconds(stamp.at), echo);
    let is_stream = generation.stream;
    let (mut answer, first) = Answer::start(app, generation, model).await?;
    if is_stream {
        let mut out = Vec::new();
        encoder.begin().iter().for_each(|event| event.write(&mut out));
        return Ok(event_stream(answer.body(encoder, &first, out)));
    }
    for progress in &first {
        encoder.take(progress);
    }
    loop {
        if let Some(end) = encoder.end() {
            return match response::error_reply(end) {
                Some(reply) => Err(reply),
                None => Ok(ok(&encoder.object())),
            };
        }
        for progress in answer.next().await {
            encoder.take(&progress);
        }
    }
}

/// An answer that a provider's model is writing. Dropping it ends the call.
struct Answer {
    stream: Box<dyn ModelStream>,
    /// Bytes that the model wrote so far.
    written: usize,
    /// True after the first output.
    has_output: bool,
}

impl Answer {
    /// Calls a model, and waits until it starts to answer: a failure before that is an error response, not
    /// the end of a stream.
    async fn start(
        app: &AppState,
        generation: Generation,
        model: ModelRef,
    ) -> Result<(Self, Vec<Progress>), Reply> {
        let stream = app.services.models.stream(prompt(generation, model));
        let mut answer = Self { stream, written: 0, has_output: false };
        loop {
            let progress = answer.next().await;
            let failed = progress.iter().find_map(|progress| match progress {
                Progress::End(end) => match &end.reason {
                    EndReason::Failed(reply) => Some(reply.clone()),
                    EndReason::Finished(_) | EndReason::Cancelled(_) => None,
                },
                Progress::Output(..) | Progress::StepEnded { .. } | Progress::Call(_) => None,
            });
            match failed {
                Some(reply) => return Err(reply),
                None if progress.is_empty() => {}
                None => {
                    answer.has_output = true;
                    return Ok((answer, progress));
                }
            }
        }
    }

    async fn next(&mut self) -> Vec<Progress> {
        let mut chunks = self.stream.next().await;
        for chunk in chunks.iter().flatten() {
            if let Chunk::Output(_, text) = chunk {
                self.written += text.len();
            }
        }
        if self.written > OUTPUT_LIMIT {
            let message = format!("the model wrote more than {OUTPUT_LIMIT} bytes in one answer");
            chunks = Err(Failure { kind: FailureKind::Malformed, message });
        }
        let mut progress = progress(chunks);
        for step in &mut progress {
            if let Progress::End(End { reason: EndReason::Failed(reply), .. }) = step
                && self.has_output
            {
                *reply = reply.clone().after_output();
            }
        }
        progress
    }

    /// The rest of the answer as the body of a stream.
    fn body(self, mut encoder: impl Encode, first: &[Progress], mut out: Vec<u8>) -> Body {
        first.iter().for_each(|progress| encoder.encode(progress, &mut out));
        let writing = Some((self, encoder, out));
        Body::from_stream(stream::unfold(writing, |writing| async move {
            let (mut answer, mut encoder, mut out) = writing?;
            while out.is_empty() {
                match tokio::time::timeout(KEEP_ALIVE_INTERVAL, answer.next()).await {
                    Err(_) => out.extend_from_slice(KEEP_ALIVE),
                    Ok(progress) => {
                        progress.iter().for_each(|it| encoder.encode(it, &mut out));
                    }
                }
            }
            let rest = (!encoder.is_over()).then_some((answer, encoder, Vec::new()));
            Some((Ok::<_, std::convert::Infallible>(Bytes::from(out)), rest))
        }))
    }
}

/// Writes the events of one of the endpoints.
trait Encode: Send + 'static {
    fn encode(&mut self, progress: &Progress, out: &mut Vec<u8>);
    fn is_over(&self) -> bool;
}

impl Encode for ChatStream {
    fn encode(&mut self, progress: &Progress, out: &mut Vec<u8>) {
        self.take(progress, out);
    }

    fn is_over(&self) -> bool {
        ChatStream::is_over(self)
    }
}

impl Encode for Encoder {
    fn encode(&mut self, progress: &Progress, out: &mut Vec<u8>) {
        self.take(progress).iter().for_each(|event| event.write(out));
    }

    fn is_over(&self) -> bool {
        Encoder::is_over(self)
    }
}
