//! The script of the fake model, which is part of a prompt: `bench:id=17,deltas=200,gap_us=1000;`.
//!
//! A prompt contains the whole conversation; the last script is used.

use std::fmt;

use memchr::memmem;

/// The text of a delta: a space and its number. JSON escapes none of it.
pub(crate) const DELTA_BYTES: usize = 7;

/// What the fake model does in one call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Script {
    /// Identifies the request in the model's log.
    pub(crate) id: u64,
    /// Number of deltas.
    pub(crate) deltas: usize,
    /// Wait before each delta; with 0 they are written as fast as possible.
    pub(crate) gap_us: u64,
    /// Start to answer and then hang.
    pub(crate) hang: bool,
    /// Call a tool first, and write the deltas after its result.
    pub(crate) call: Option<Tool>,
}

/// A tool that the model calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The command `true`.
    Shell,
    /// A small file of the workspace.
    ReadFile,
}

impl Tool {
    fn parse(value: u64) -> Option<Self> {
        [Self::Shell, Self::ReadFile].into_iter().find(|tool| tool.number() == value)
    }

    fn number(self) -> u64 {
        match self {
            Self::Shell => 1,
            Self::ReadFile => 2,
        }
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, deltas, gap_us, hang, call } = self;
        let (hang, call) = (u8::from(*hang), call.map_or(0, Tool::number));
        write!(f, "bench:id={id},deltas={deltas},gap_us={gap_us},hang={hang},call={call};")
    }
}

impl Script {
    /// Finds the last script in a request's body. A tool with a result is not called again.
    pub(crate) fn find(body: &[u8]) -> Option<Self> {
        let start = memmem::rfind(body, b"bench:")? + b"bench:".len();
        let end = start + memchr::memchr(b';', &body[start..])?;
        let mut script = Self::default();
        for pair in str::from_utf8(&body[start..end]).ok()?.split(',') {
            let (name, value) = pair.split_once('=')?;
            let value: u64 = value.parse().ok()?;
            match name {
                "id" => script.id = value,
                "deltas" => script.deltas = usize::try_from(value).ok()?,
                "gap_us" => script.gap_us = value,
                "hang" => script.hang = value == 1,
                "call" => script.call = Tool::parse(value),
                _ => return None,
            }
        }
        if memmem::find(&body[end..], b"\"role\":\"tool\"").is_some() {
            script.call = None;
        }
        Some(script)
    }
}

/// The text of a delta.
pub(crate) fn delta(number: usize) -> [u8; DELTA_BYTES] {
    let mut text = *b" 000000";
    let mut rest = number;
    for digit in text[1..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    text
}
