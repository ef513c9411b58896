//! The microphone and the loudspeaker of a desktop, through PulseAudio's protocol, which PipeWire
//! also supports.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use anyhow::{Context as _, Result};
use pulseaudio::protocol::stream::{BufferAttr, StreamFlags};
use pulseaudio::protocol::{
    ChannelMap, PlaybackStreamParams, RecordStreamParams, SampleFormat, SampleSpec,
};
use pulseaudio::{Client, PlaybackSource, PlaybackStream, RecordStream};
use quintet_kernel::port::Audio;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A connection to the sound server of the desktop.
pub(super) struct SoundServer(Client);

impl SoundServer {
    /// Connects to the server that the environment names. Fails if there is none.
    pub(super) fn connect() -> Result<Self> {
        let client = Client::from_env(c"quintet");
        Ok(Self(client.context(
            "no sound server answers (PulseAudio, or PipeWire with pipewire-pulse); \
             --file FILE or --file - and --out FILE do without one",
        )?))
    }

    /// Records from the default microphone: one channel, in pieces of 100 ms.
    pub(super) async fn record(&self, rate: u32) -> Result<Recording> {
        let (sender, pieces) = unbounded_channel();
        let sink = move |bytes: &[u8]| {
            let samples = bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
            let _ = sender.send(samples.collect());
        };
        let params = RecordStreamParams {
            sample_spec: mono(rate),
            channel_map: ChannelMap::mono(),
            buffer_attr: BufferAttr { fragment_size: rate / 10 * 2, ..BufferAttr::default() },
            flags: StreamFlags { adjust_latency: true, ..StreamFlags::default() },
            ..RecordStreamParams::default()
        };
        let stream = self.0.create_record_stream(params, sink).await;
        Ok(Recording { pieces, _stream: stream.context("the sound server gives no microphone")? })
    }

    /// Opens the default loudspeaker.
    pub(super) async fn play(&self, rate: u32) -> Result<Playback> {
        let (sender, pieces) = unbounded_channel();
        let params = PlaybackStreamParams {
            sample_spec: mono(rate),
            channel_map: ChannelMap::mono(),
            ..PlaybackStreamParams::default()
        };
        let queue = Queue { pieces, piece: Vec::new(), read: 0 };
        let stream = self.0.create_playback_stream(params, queue).await;
        Ok(Playback { sender, stream: stream.context("the sound server gives no loudspeaker")? })
    }
}

fn mono(rate: u32) -> SampleSpec {
    SampleSpec { format: SampleFormat::S16Le, channels: 1, sample_rate: rate }
}

/// Audio from the microphone.
pub(super) struct Recording {
    pieces: UnboundedReceiver<Vec<i16>>,
    /// Ends the recording when it is dropped.
    _stream: RecordStream,
}

impl Recording {
    /// The next piece. Fails if the server has disconnected.
    pub(super) async fn next(&mut self) -> Result<Vec<i16>> {
        self.pieces.recv().await.context("the sound server ended the recording")
    }
}

/// Audio that is being played.
pub(super) struct Playback {
    sender: UnboundedSender<Vec<u8>>,
    stream: PlaybackStream,
}

impl Playback {
    /// Appends audio.
    pub(super) fn push(&self, audio: &Audio) {
        let bytes = audio.samples.iter().flat_map(|sample| sample.to_le_bytes());
        // A lost connection is noticed in `finish`.
        let _ = self.sender.send(bytes.collect());
    }

    /// Returns when everything has been played.
    pub(super) async fn finish(self) -> Result<()> {
        drop(self.sender);
        self.stream.play_all().await.context("the sound server ended the playback")
    }
}

/// The audio to be played.
struct Queue {
    pieces: UnboundedReceiver<Vec<u8>>,
    piece: Vec<u8>,
    /// The part of the piece that was already read.
    read: usize,
}

impl PlaybackSource for Queue {
    /// Fills a buffer with available audio. Zero bytes mean the end.
    fn poll_read(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
        buffer: &mut [u8],
    ) -> Poll<usize> {
        while self.read == self.piece.len() {
            match ready!(self.pieces.poll_recv(task)) {
                Some(piece) => (self.piece, self.read) = (piece, 0),
                None => return Poll::Ready(0),
            }
        }
        let size = buffer.len().min(self.piece.len() - self.read);
        buffer[..size].copy_from_slice(&self.piece[self.read..self.read + size]);
        self.read += size;
        Poll::Ready(size)
    }
}
