//! Reads and writes WAV files.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Result, ensure};
use quintet_dialects::wav;
use quintet_kernel::port::Audio;

/// Maximum length of a file, in bytes: an hour of stereo at 48 kHz is smaller.
const FILE_LIMIT: u64 = 1 << 30;

/// Reads a file. Fails if it is not a WAV file with 16-bit samples.
pub(crate) fn read(file: &Path) -> Result<Audio> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)?.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= FILE_LIMIT, "the file is larger than 1 GB");
    Ok(wav::parse(&bytes)?)
}

/// Writes a file.
pub(crate) fn write(file: &Path, audio: &Audio) -> Result<()> {
    Ok(std::fs::write(file, wav::bytes(audio)?)?)
}
