//! WAV files with 16-bit samples. Several channels are averaged.

use quintet_kernel::port::Audio;

const HEADER_BYTES: u32 = 44;

/// The reason why audio cannot be read or written as a WAV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WavError {
    /// The file is of another type.
    #[error("not a WAV file")]
    NotWav,
    /// The file ends before its samples.
    #[error("the file has no samples")]
    NoSamples,
    /// The samples come before their format.
    #[error("the samples come before their format")]
    NoFormat,
    /// The format is too short.
    #[error("the format is incomplete")]
    Incomplete,
    /// The samples are of another kind.
    #[error("only 16-bit samples are supported")]
    NotPcm16,
    /// The format has no channels.
    #[error("the file has no channels")]
    NoChannels,
    /// The audio has more bytes than the format supports.
    #[error("the audio is too long for a WAV file")]
    TooLong,
}

/// Parses a file. Fails if it is not a WAV file with 16-bit samples.
pub fn parse(bytes: &[u8]) -> Result<Audio, WavError> {
    if bytes.get(..4) != Some(b"RIFF") || bytes.get(8..12) != Some(b"WAVE") {
        return Err(WavError::NotWav);
    }
    let (mut at, mut format) = (12usize, None);
    while let Some(header) = bytes.get(at..at.saturating_add(8)) {
        let (name, size) = header.split_at(4);
        let size = number(size).ok_or(WavError::Incomplete)? as usize;
        let rest = &bytes[at + 8..];
        let content = rest.get(..size).unwrap_or(rest);
        match name {
            b"fmt " => format = Some(Format::parse(content)?),
            b"data" => return Ok(format.ok_or(WavError::NoFormat)?.audio(content)),
            _ => {}
        }
        at = at.saturating_add(8).saturating_add(size).saturating_add(size % 2);
    }
    Err(WavError::NoSamples)
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_le_bytes)
}

struct Format {
    channels: usize,
    rate: u32,
}

impl Format {
    fn parse(bytes: &[u8]) -> Result<Self, WavError> {
        let short =
            |at: usize| bytes.get(at..at + 2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let (kind, channels, bits) = (short(0), short(2), short(14));
        let rate = bytes.get(4..8).and_then(number).ok_or(WavError::Incomplete)?;
        // 0xFFFE is the extensible format, which is plain PCM if its samples have 16 bits.
        if !matches!(kind, Some(1 | 0xFFFE)) || bits != Some(16) {
            return Err(WavError::NotPcm16);
        }
        let channels = channels.filter(|channels| *channels > 0).ok_or(WavError::NoChannels)?;
        Ok(Self { channels: channels.into(), rate })
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

/// Encodes audio as a file. Fails if it is longer than 4 GB.
pub fn bytes(audio: &Audio) -> Result<Vec<u8>, WavError> {
    let size =
        u32::try_from(audio.samples.len() * 2).ok().filter(|size| *size < u32::MAX - HEADER_BYTES);
    let size = size.ok_or(WavError::TooLong)?;
    let mut bytes = Vec::with_capacity((size + HEADER_BYTES) as usize);
    bytes.extend_from_slice(b"RIFF");
    bytes.extend_from_slice(&(size + HEADER_BYTES - 8).to_le_bytes());
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
