//! Sources of audio: the microphone, a WAV file, or raw samples on standard input.

use std::future::pending;
use std::io::Read as _;
use std::path::Path;

use anyhow::Result;
use quintet_kernel::port::Audio;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::{Duration, sleep};

use super::sound::{Recording, SoundServer};
use crate::voice::wav;

/// Samples per second of the microphone and of standard input.
const LIVE_RATE: u32 = 16_000;
const PIECE_DURATION: Duration = Duration::from_millis(100);

/// Audio in pieces of 100 ms, one channel.
pub(super) enum Source {
    /// The rest of a file.
    File(Audio),
    /// The samples on standard input.
    Input(Receiver<std::io::Result<Vec<i16>>>),
    /// The microphone.
    Microphone(Recording),
}

impl Source {
    /// Opens a file, or standard input if the name is `-`.
    pub(super) fn open(file: &Path) -> Result<Self> {
        if file == Path::new("-") {
            Ok(Self::Input(read_input()))
        } else {
            wav::read(file).map(Self::File)
        }
    }

    /// Opens the microphone.
    pub(super) async fn microphone(server: &SoundServer) -> Result<Self> {
        Ok(Self::Microphone(server.record(LIVE_RATE).await?))
    }

    /// The next piece; `None` at the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Audio>> {
        let samples = match self {
            Self::File(audio) => {
                let piece = (audio.rate as usize / 10).clamp(1, audio.samples.len().max(1));
                audio.samples.drain(..piece.min(audio.samples.len())).collect()
            }
            Self::Input(pieces) => pieces.recv().await.transpose()?.unwrap_or_default(),
            Self::Microphone(recording) => recording.next().await?,
        };
        let rate = self.rate();
        Ok((!samples.is_empty()).then_some(Audio { samples, rate }))
    }

    /// The next piece in real time; silence after the end, so that the last utterance is completed.
    pub(super) async fn next_or_silence(&mut self) -> Result<Audio> {
        if let Self::File(_) = self {
            sleep(PIECE_DURATION).await;
        }
        let rate = self.rate();
        let silence = || Audio { samples: vec![0; (rate / 10) as usize], rate };
        Ok(self.next().await?.unwrap_or_else(silence))
    }

    /// Discards live audio, forever; a file is not read meanwhile.
    pub(super) async fn drop_live(&mut self) -> Result<()> {
        if let Self::File(_) = self {
            return pending().await;
        }
        while self.next().await?.is_some() {}
        pending().await
    }

    fn rate(&self) -> u32 {
        match self {
            Self::File(audio) => audio.rate,
            Self::Input(_) | Self::Microphone(_) => LIVE_RATE,
        }
    }
}

/// Reads standard input on its own thread, because reading blocks; the last piece may be shorter.
fn read_input() -> Receiver<std::io::Result<Vec<i16>>> {
    let (sender, pieces) = channel(1);
    let read = move || {
        let mut bytes = Vec::new();
        let size = u64::from(LIVE_RATE / 10 * 2);
        std::io::stdin().lock().take(size).read_to_end(&mut bytes)?;
        Ok(bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
    };
    std::thread::spawn(move || {
        loop {
            let piece: std::io::Result<Vec<i16>> = read();
            let is_end = !piece.as_ref().is_ok_and(|samples| !samples.is_empty());
            if sender.blocking_send(piece).is_err() || is_end {
                break;
            }
        }
    });
    pieces
}
