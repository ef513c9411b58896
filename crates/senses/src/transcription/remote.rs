//! Transcription by a service that accepts a stream of audio over a WebSocket and detects utterances itself.
//!
//! Audio is never dropped: while the service accepts no more, new audio and its sender wait. Partial transcripts
//! that are not read in time are dropped.

mod nova;
mod realtime;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use quintet_kernel::port::{SenseError, Transcriber, Transcript, TranscriptionStream};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::driver::Input;
use super::{INPUT_CAPACITY, OUTPUT_CAPACITY, STREAM_LIMIT, Stream};
use nova::Nova;
use realtime::Realtime;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last transcripts are awaited after the audio has ended.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// A service that transcribes streams.
#[derive(Clone)]
pub struct Service {
    /// The address, `ws://` or `wss://`.
    pub url: String,
    /// Headers of the request that opens a connection.
    pub headers: Vec<(String, String)>,
    /// The key, which is sent as a bearer token and never shown.
    pub key: Option<String>,
    /// The protocol of the service.
    pub protocol: Protocol,
}

/// The protocol of a transcription service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI's realtime API with a transcription model.
    Realtime {
        /// The model.
        model: String,
    },
    /// A Nova gateway: the protocol of this daemon's own `/ws/transcription`.
    Nova,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, protocol, .. } = self;
        f.debug_struct("Service")
            .field("url", url)
            .field("protocol", protocol)
            .finish_non_exhaustive()
    }
}

/// Transcribes streams of audio through a service. Connects with the first stream.
#[derive(Debug)]
pub struct RemoteTranscriber {
    service: Arc<Service>,
    streams: Arc<Semaphore>,
}

impl RemoteTranscriber {
    /// A transcriber that uses a service.
    pub fn new(service: Service) -> Self {
        Self { service: Arc::new(service), streams: Arc::new(Semaphore::new(STREAM_LIMIT)) }
    }
}

impl Transcriber for RemoteTranscriber {
    /// Always succeeds: the service is not contacted.
    fn ready(&self) -> Result<(), SenseError> {
        Ok(())
    }

    fn open(&self) -> Result<Box<dyn TranscriptionStream>, SenseError> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().map_err(|_| SenseError::Busy)?;
        let (input, inputs) = channel(INPUT_CAPACITY);
        let (output, outputs) = channel(OUTPUT_CAPACITY);
        let mut tasks = JoinSet::new();
        tasks.spawn(run(Arc::clone(&self.service), inputs, output));
        let outputs = Mutex::new(outputs);
        Ok(Box::new(Stream { input, outputs, _tasks: tasks, _permit: permit }))
    }
}

/// A codec for one protocol: inputs of a stream to messages, and messages to transcripts.
trait Codec: Send {
    /// The first messages.
    fn greeting(&self) -> Vec<Message>;
    /// The messages for an input. Fails if the audio cannot be used.
    fn encode(&mut self, input: Input) -> Result<Vec<Message>, SenseError>;
    /// The transcripts in a message. Fails if the service reports an error.
    fn decode(&mut self, message: &str) -> Result<Vec<Transcript>, SenseError>;
    /// True once everything is transcribed, after the audio has ended.
    fn is_finished(&self) -> bool;
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;
type Output = Sender<Result<Transcript, SenseError>>;

async fn run(service: Arc<Service>, inputs: Receiver<Input>, output: Output) {
    let codec: Box<dyn Codec> = match &service.protocol {
        Protocol::Realtime { model } => Box::new(Realtime::new(model)),
        Protocol::Nova => Box::new(Nova::default()),
    };
    let done = match connect(&service).await {
        Ok(socket) => transcribe(socket, codec, inputs, &output).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        // If the stream was dropped, no error is needed.
        let _ = output.send(Err(service.redacted(error))).await;
    }
}

async fn connect(service: &Service) -> Result<Socket, SenseError> {
    let connected = timeout(CONNECT_TIMEOUT, connect_async(service.request()?)).await;
    let connected = connected.map_err(|_| failed("the transcription service does not answer"))?;
    connected.map(|(socket, _)| socket).map_err(|error| {
        failed(format!("the transcription service cannot be reached: {}", reason(&error)))
    })
}

/// Sends audio and receives transcripts until one side ends.
async fn transcribe(
    socket: Socket,
    mut codec: Box<dyn Codec>,
    mut inputs: Receiver<Input>,
    output: &Output,
) -> Result<(), SenseError> {
    let (mut sink, mut source) = socket.split();
    for message in codec.greeting() {
        sink.send(message).await.map_err(broken)?;
    }
    let mut is_over = false;
    while !(is_over && codec.is_finished()) {
        tokio::select! {
            input = inputs.recv(), if !is_over => {
                let input = input.unwrap_or(Input::Finish);
                is_over = matches!(input, Input::Finish);
                for message in codec.encode(input)? {
                    sink.send(message).await.map_err(broken)?;
                }
            }
            message = source.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    for transcript in codec.decode(&text)? {
                        publish(output, transcript).await;
                    }
                }
                Some(Ok(Message::Close(_))) | None => {
                    return Err(failed("the transcription service ended the connection"));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(broken(error)),
            },
            () = sleep(FINISH_TIMEOUT), if is_over => return Ok(()),
        }
    }
    // All transcripts have been received before the close.
    let _ = sink.close().await;
    Ok(())
}

/// Queues a transcript for the caller; a partial one only if there is room.
async fn publish(output: &Output, transcript: Transcript) {
    match transcript {
        Transcript::Partial(_) => {
            let _ = output.try_send(Ok(transcript));
        }
        Transcript::Final(_) | Transcript::UtteranceEnd => {
            // If the reader is gone, the stream is dropped, and this task with it.
            let _ = output.send(Ok(transcript)).await;
        }
    }
}

impl Service {
    fn request(&self) -> Result<Request, SenseError> {
        let wrong = |_| failed(format!("{} is not a WebSocket address", self.url));
        let mut request = self.url.as_str().into_client_request().map_err(wrong)?;
        let key = self.key.iter().map(|key| ("authorization", format!("Bearer {key}")));
        let others = self.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
        for (name, value) in key.chain(others) {
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, mut value) =
                header.ok_or_else(|| failed(format!("the header {name} cannot be sent")))?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }

    /// An error without the key in it.
    fn redacted(&self, error: SenseError) -> SenseError {
        match (error, &self.key) {
            (SenseError::Failed(reason), Some(key)) if !key.is_empty() => {
                SenseError::Failed(reason.replace(key.as_str(), "[key]"))
            }
            (error, _) => error,
        }
    }
}

fn reason(error: &tungstenite::Error) -> String {
    match error {
        tungstenite::Error::Http(response) => {
            let body = response.body().as_deref().unwrap_or_default();
            let message: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
            let message =
                message["error"]["message"].as_str().map(|message| format!(": {message}"));
            format!("{}{}", response.status(), message.unwrap_or_default())
        }
        error => error.to_string(),
    }
}

fn broken(error: tungstenite::Error) -> SenseError {
    failed(format!("the connection to the transcription service broke: {}", reason(&error)))
}

fn failed(reason: impl Into<String>) -> SenseError {
    SenseError::Failed(reason.into())
}

#[cfg(test)]
mod tests;
