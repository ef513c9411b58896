//! The encoding of a delta in a draft: length and checksum, then the fields.
//!
//! ```text
//! u32 length of the rest | u32 checksum of the rest | u64 offset | i64 at | u8 channel
//! | u16 length, the turn's id | u16 length, the step's id | the text
//! ```
//! Numbers are little-endian. An empty id means the id of the previous record. Most deltas continue
//! where the previous one ended; they have short records, because the other fields would be longer
//! than the text:
//!
//! ```text
//! u16 length of the rest | u16 checksum of the rest, its highest bit set | microseconds since the
//! record before, seven bits a byte, the lowest first | the text
//! ```
//! That bit is never set in a full record, because its length is never that large. A draft outlives
//! the version that wrote it by at most one restart; a record that cannot be read is treated like
//! an incomplete end.

use std::io::{self, ErrorKind};

use quintet_kernel::follow::Delta;
use quintet_kernel::id::{StepId, TurnId};
use quintet_kernel::model::Channel;
use quintet_kernel::time::Time;

const HEADER_BYTES: usize = 8;
const SHORT_HEAD: usize = 4;
/// Marks a short record.
const SHORT: u16 = 0x8000;
/// Set in a byte of a number if another byte follows.
const MORE: u8 = 0x80;

/// The fields of the previous record that the next one need not repeat.
#[derive(Debug)]
pub(super) struct Last {
    turn: TurnId,
    step: StepId,
    channel: Channel,
    /// The end offset of its text.
    end: u64,
    at: Time,
}

impl Last {
    pub(super) fn of(delta: &Delta) -> Self {
        let (turn, step) = (delta.turn.clone(), delta.step.clone());
        let end = delta.offset + delta.text.len() as u64;
        Self { turn, step, channel: delta.channel, end, at: delta.at }
    }

    fn is_of_step(&self, delta: &Delta) -> bool {
        self.turn == delta.turn && self.step == delta.step
    }

    /// The microseconds between this record and a delta that continues it.
    fn microseconds_to(&self, delta: &Delta) -> Option<u64> {
        let goes_on = self.channel == delta.channel && self.end == delta.offset;
        let later = u64::try_from(delta.at.micros().checked_sub(self.at.micros())?).ok()?;
        (goes_on && self.is_of_step(delta)).then_some(later)
    }
}

/// Appends a delta to a buffer, after the record `before`.
pub(super) fn write(buffer: &mut Vec<u8>, delta: &Delta, before: Option<&Last>) -> io::Result<()> {
    let later = before.and_then(|before| before.microseconds_to(delta));
    match later.and_then(|later| short(delta, later)) {
        Some(record) => {
            buffer.extend_from_slice(&record);
            Ok(())
        }
        None => write_whole(buffer, delta, before),
    }
}

/// A short record, unless the text is too long for one.
fn short(delta: &Delta, mut later: u64) -> Option<Vec<u8>> {
    let mut record = vec![0; SHORT_HEAD];
    while later >= u64::from(MORE) {
        record.push(later as u8 | MORE);
        later >>= 7;
    }
    record.push(later as u8);
    record.extend_from_slice(delta.text.as_bytes());
    let (head, body) = record.split_at_mut(SHORT_HEAD);
    let len = u16::try_from(body.len()).ok()?;
    head[..2].copy_from_slice(&len.to_le_bytes());
    head[2..].copy_from_slice(&short_checksum(body).to_le_bytes());
    Some(record)
}

fn write_whole(buffer: &mut Vec<u8>, delta: &Delta, before: Option<&Last>) -> io::Result<()> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; HEADER_BYTES]);
    buffer.extend_from_slice(&delta.offset.to_le_bytes());
    buffer.extend_from_slice(&delta.at.micros().to_le_bytes());
    buffer.push(code(delta.channel));
    let same = before.is_some_and(|before| before.is_of_step(delta));
    let ids = if same { ["", ""] } else { [delta.turn.as_str(), delta.step.as_str()] };
    ids.into_iter().try_for_each(|id| write_id(buffer, id))?;
    buffer.extend_from_slice(delta.text.as_bytes());
    let (head, body) = buffer[start..].split_at_mut(HEADER_BYTES);
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

/// The deltas of a draft, and the length of its complete records in bytes.
pub(super) fn deltas(bytes: &[u8]) -> (Vec<Delta>, usize) {
    let mut deltas: Vec<Delta> = Vec::new();
    let mut rest = bytes;
    while let Some((delta, after)) = record(rest, deltas.last()) {
        deltas.push(delta);
        rest = after;
    }
    (deltas, bytes.len() - rest.len())
}

fn record<'b>(bytes: &'b [u8], before: Option<&Delta>) -> Option<(Delta, &'b [u8])> {
    let (head, rest) = bytes.split_first_chunk::<SHORT_HEAD>()?;
    let (len, sum) =
        (u16::from_le_bytes([head[0], head[1]]), u16::from_le_bytes([head[2], head[3]]));
    if sum & SHORT == 0 {
        return whole_record(bytes, before);
    }
    let (body, rest) = rest.split_at_checked(len.into())?;
    let sound = short_checksum(body) == sum;
    sound.then(|| next_piece(body, before?)).flatten().map(|delta| (delta, rest))
}

/// The delta of a short record.
fn next_piece(body: &[u8], before: &Delta) -> Option<Delta> {
    let digits = 1 + body.iter().position(|byte| byte & MORE == 0)?;
    let (number, text) = body.split_at(digits);
    let digit = |later: u64, byte: &u8| Some(later.checked_mul(128)? | u64::from(byte & !MORE));
    let later = number.iter().rev().try_fold(0, digit)?;
    let at = before.at.micros().checked_add(i64::try_from(later).ok()?)?;
    Some(Delta {
        turn: before.turn.clone(),
        step: before.step.clone(),
        offset: before.offset + before.text.len() as u64,
        channel: before.channel,
        text: str::from_utf8(text).ok()?.into(),
        at: Time::from_micros(at),
    })
}

fn whole_record<'b>(bytes: &'b [u8], before: Option<&Delta>) -> Option<(Delta, &'b [u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (sum, rest) = rest.split_first_chunk()?;
    let (body, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let sound = checksum(body) == u32::from_le_bytes(*sum);
    sound.then(|| delta(body, before)).flatten().map(|delta| (delta, rest))
}

fn delta(body: &[u8], before: Option<&Delta>) -> Option<Delta> {
    let (offset, rest) = body.split_first_chunk()?;
    let (at, rest) = rest.split_first_chunk()?;
    let (code, rest) = rest.split_first()?;
    let (turn, rest) = id(rest)?;
    let (step, text) = id(rest)?;
    let (turn, step) = match (turn, step) {
        ("", "") => before.map(|before| (before.turn.clone(), before.step.clone()))?,
        (turn, step) => (TurnId::parse(turn)?, StepId::parse(step)?),
    };
    Some(Delta {
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

fn short_checksum(bytes: &[u8]) -> u16 {
    let sum = checksum(bytes);
    SHORT | (sum ^ sum >> 16) as u16
}

/// FNV-1a: detects incomplete writes.
fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, &byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
