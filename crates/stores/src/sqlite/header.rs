//! The first bytes of a database file, checked before SQLite opens it.
//!
//! Every database of this program is created with its application id (see [`super::open`]), so the id in the
//! file is final, whatever the write-ahead log still contains.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::migrate;
use crate::Error;

/// "Qntt", in the header of every database of this program.
pub(super) const APPLICATION_ID: i32 = 0x516e_7474;

const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
const USER_VERSION: usize = 60;
const APPLICATION: usize = 68;

/// Whether the file exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileState {
    /// The file is a database of this program.
    OurDatabase,
    /// The file does not exist.
    Missing,
}

/// Inspects a file without changing it.
pub(super) fn inspect(path: &Path) -> Result<FileState, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileState::Missing),
        Err(error) => return Err(Error::unusable(path)(error)),
    };
    let mut header = Vec::with_capacity(HEADER_BYTES);
    file.take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(Error::unusable(path))?;
    check_header(path, &header)
}

fn check_header(path: &Path, header: &[u8]) -> Result<FileState, Error> {
    if header.len() < HEADER_BYTES || !header.starts_with(MAGIC) {
        return Err(Error::NotADatabase(path.into()));
    }
    if number(header, APPLICATION) != APPLICATION_ID.cast_unsigned() {
        return Err(Error::Foreign(path.into()));
    }
    // The log may contain a newer version, which SQLite reads when it opens the file.
    migrate::check(path, number(header, USER_VERSION))?;
    Ok(FileState::OurDatabase)
}

fn number(header: &[u8], at: usize) -> u32 {
    let bytes = header[at..].first_chunk().expect("the header is complete");
    u32::from_be_bytes(*bytes)
}
