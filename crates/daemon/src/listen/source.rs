//! Where audio comes from: a WAV file, or samples on standard input as a recorder writes them.

use std::future::pending;
use std::io::Read as _;
use std::path::Path;

use anyhow::Result;
use quintet_kernel::port::Audio;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Duration, sleep};

use crate::voice::wav;

/// Samples per second on standard input.
const INPUT_RATE: u32 = 16_000;
const PIECE_DURATION: Duration = Duration::from_millis(100);

/// Audio in pieces of 100 ms.
pub(super) enum Source {
    /// What is left of a file.
    File(Audio),
    /// Samples of 16 bits, one channel, as long as somebody records; and the piece that is being read.
    Input(Option<JoinHandle<Result<Vec<i16>>>>),
}

impl Source {
    /// Opens a file, or standard input if it is called `-`.
    pub(super) fn open(file: &Path) -> Result<Self> {
        if file == Path::new("-") { Ok(Self::Input(None)) } else { wav::read(file).map(Self::File) }
    }

    /// The next piece; nothing at the end. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Option<Audio>> {
        let samples = match self {
            Self::File(audio) => {
                let piece = (audio.rate as usize / 10).clamp(1, audio.samples.len().max(1));
                audio.samples.drain(..piece.min(audio.samples.len())).collect()
            }
            Self::Input(running) => {
                let samples = running.get_or_insert_with(|| spawn_blocking(read)).await;
                *running = None;
                samples??
            }
        };
        let rate = self.rate();
        Ok((!samples.is_empty()).then_some(Audio { samples, rate }))
    }

    /// The next piece, not before its time; silence behind the end, so that what was said last is over.
    pub(super) async fn next_or_silence(&mut self) -> Result<Audio> {
        match self {
            Self::File(_) => sleep(PIECE_DURATION).await,
            Self::Input(_) => {}
        }
        let rate = self.rate();
        let silence = || Audio { samples: vec![0; (rate / 10) as usize], rate };
        Ok(self.next().await?.unwrap_or_else(silence))
    }

    /// Drops a piece of what is being recorded; a file waits.
    pub(super) async fn drop_live(&mut self) -> Result<()> {
        match self {
            Self::File(_) => pending().await,
            Self::Input(_) => match self.next().await? {
                Some(_) => Ok(()),
                None => pending().await,
            },
        }
    }

    fn rate(&self) -> u32 {
        match self {
            Self::File(audio) => audio.rate,
            Self::Input(_) => INPUT_RATE,
        }
    }
}

/// Reads a piece of standard input; a shorter one at its end.
fn read() -> Result<Vec<i16>> {
    let mut bytes = Vec::new();
    let size = u64::from(INPUT_RATE / 10 * 2);
    std::io::stdin().lock().take(size).read_to_end(&mut bytes)?;
    Ok(bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}
