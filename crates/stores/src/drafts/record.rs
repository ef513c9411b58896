//! How a piece is written down: length and checksum, then the fields one after the other.
//!
//! ```text
//! u32 length of the rest | u32 checksum of the rest | u64 offset | i64 at | u8 channel
//! | u16 length, the turn's id | u16 length, the step's id | the text
//! ```
//! Numbers are little-endian. An id that is empty is that of the record before: most pieces are of one
//! step, and its ids would be most of what is written. A draft never outlives the version that wrote it by more than one
//! restart; what cannot be read is treated like a torn end.

use std::io::{self, ErrorKind};

use quintet_kernel::follow::Piece;
use quintet_kernel::id::{StepId, TurnId};
use quintet_kernel::model::Channel;
use quintet_kernel::time::Time;

const HEAD: usize = 8;

/// The turn and the step of a record.
pub(super) type Ids = (TurnId, StepId);

/// Adds a piece to a buffer, behind a record with these ids.
pub(super) fn write(buffer: &mut Vec<u8>, piece: &Piece, before: Option<&Ids>) -> io::Result<()> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; HEAD]);
    buffer.extend_from_slice(&piece.offset.to_le_bytes());
    buffer.extend_from_slice(&piece.at.micros().to_le_bytes());
    buffer.push(code(piece.channel));
    let same = before.is_some_and(|(turn, step)| *turn == piece.turn && *step == piece.step);
    let ids = if same { ["", ""] } else { [piece.turn.as_str(), piece.step.as_str()] };
    ids.into_iter().try_for_each(|id| write_id(buffer, id))?;
    buffer.extend_from_slice(piece.text.as_bytes());
    let (head, body) = buffer[start..].split_at_mut(HEAD);
    let len = u32::try_from(body.len()).map_err(|_| ErrorKind::InvalidInput)?;
    head[..4].copy_from_slice(&len.to_le_bytes());
    head[4..].copy_from_slice(&checksum(body).to_le_bytes());
    Ok(())
}

fn write_id(buffer: &mut Vec<u8>, id: &str) -> io::Result<()> {
    let len = u16::try_from(id.len()).map_err(|_| ErrorKind::InvalidInput)?;
    buffer.extend_from_slice(&len.to_le_bytes());
    buffer.extend_from_slice(id.as_bytes());
    Ok(())
}

/// The pieces of a draft, and how many bytes of it are whole.
pub(super) fn pieces(bytes: &[u8]) -> (Vec<Piece>, usize) {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut rest = bytes;
    while let Some((piece, after)) = record(rest, pieces.last()) {
        pieces.push(piece);
        rest = after;
    }
    (pieces, bytes.len() - rest.len())
}

fn record<'b>(bytes: &'b [u8], before: Option<&Piece>) -> Option<(Piece, &'b [u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let sound = checksum(body) == u32::from_le_bytes(*sum);
    sound.then(|| piece(body, before)).flatten().map(|piece| (piece, rest))
}

fn piece(body: &[u8], before: Option<&Piece>) -> Option<Piece> {
    let (offset, rest) = body.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (code, rest) = rest.split_first()?;
    let (turn, rest) = id(rest)?;
    let (step, text) = id(rest)?;
    let (turn, step) = match (turn, step) {
        ("", "") => before.map(|before| (before.turn.clone(), before.step.clone()))?,
        (turn, step) => (TurnId::parse(turn)?, StepId::parse(step)?),
    };
    Some(Piece {
        turn,
        step,
        offset: u64::from_le_bytes(*offset),
        channel: channel(*code)?,
        text: str::from_utf8(text).ok()?.into(),
        at: Time::from_micros(i64::from_le_bytes(*at)),
    })
}

fn id(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (id, rest) = rest.split_at_checked(u16::from_le_bytes(*len).into())?;
    Some((str::from_utf8(id).ok()?, rest))
}

fn code(channel: Channel) -> u8 {
    match channel {
        Channel::Text => 0,
        Channel::Thought => 1,
    }
}

fn channel(code: u8) -> Option<Channel> {
    [Channel::Text, Channel::Thought].into_iter().find(|&channel| self::code(channel) == code)
}

/// FNV-1a: finds a torn write, which is all it has to.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
