//! WAV files: samples of 16 bits. Of several channels the mean is taken.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use quintet_kernel::port::Audio;

/// Files that are larger are not read: an hour of stereo at 48 kHz is smaller.
const FILE_LIMIT: u64 = 1 << 30;
const HEADER: u32 = 44;

/// Reads a file. Fails if it is no WAV file with samples of 16 bits.
pub(crate) fn read(file: &Path) -> Result<Audio> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= FILE_LIMIT, "the file is larger than 1 GB");
    parse(&bytes)
}

fn parse(bytes: &[u8]) -> Result<Audio> {
    ensure!(
        bytes.get(..4) == Some(b"RIFF") && bytes.get(8..12) == Some(b"WAVE"),
        "this is no WAV file"
    );
    let (mut at, mut format) = (12usize, None);
    while let Some(header) = bytes.get(at..at.saturating_add(8)) {
        let (name, size) = header.split_at(4);
        let size = u32::from_le_bytes(size.try_into()?) as usize;
        let rest = &bytes[at + 8..];
        let content = rest.get(..size).unwrap_or(rest);
        match name {
            b"fmt " => format = Some(Format::parse(content)?),
            b"data" => {
                let format = format.context("its samples come before their format")?;
                return Ok(format.audio(content));
            }
            _ => {}
        }
        at = at.saturating_add(8).saturating_add(size).saturating_add(size % 2);
    }
    bail!("it has no samples")
}

struct Format {
    channels: usize,
    rate: u32,
}

impl Format {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let short =
            |at: usize| bytes.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let (kind, channels, bits) = (short(0), short(2), short(14));
        let rate = bytes.get(4..8).context("its format is cut off")?;
        // 0xFFFE is the extensible format, which is plain where its samples have 16 bits.
        ensure!(
            matches!(kind, Some(1 | 0xFFFE)) && bits == Some(16),
            "only samples of 16 bits can be read"
        );
        let channels = channels.filter(|channels| *channels > 0).context("it has no channels")?;
        Ok(Self { channels: channels.into(), rate: u32::from_le_bytes(rate.try_into()?) })
    }

    fn audio(&self, bytes: &[u8]) -> Audio {
        let frames = bytes.chunks_exact(2 * self.channels);
        let mean = |frame: &[u8]| {
            let samples =
                frame.chunks_exact(2).map(|pair| i64::from(i16::from_le_bytes([pair[0], pair[1]])));
            (samples.sum::<i64>() / self.channels as i64) as i16
        };
        Audio { samples: frames.map(mean).collect(), rate: self.rate }
    }
}

/// Writes a file.
pub(crate) fn write(file: &Path, audio: &Audio) -> Result<()> {
    Ok(std::fs::write(file, bytes(audio)?)?)
}

fn bytes(audio: &Audio) -> Result<Vec<u8>> {
    let size = u32::try_from(audio.samples.len() * 2).ok().filter(|size| *size < u32::MAX - HEADER);
    let size = size.context("it is too long for a WAV file")?;
    let mut bytes = Vec::with_capacity((size + HEADER) as usize);
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(size + HEADER - 8).to_le_bytes());
    bytes.extend_from_slice(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend_from_slice(&audio.rate.to_le_bytes());
    bytes.extend_from_slice(&audio.rate.saturating_mul(2).to_le_bytes());
    bytes.extend_from_slice(b"\x02\0\x10\0data");
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend(audio.samples.iter().flat_map(|sample| sample.to_le_bytes()));
    Ok(bytes)
}

#[cfg(test)]
mod tests;
