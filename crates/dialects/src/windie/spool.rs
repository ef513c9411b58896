//! What was told of the turns under way, beside the journal: a daemon that starts again tells it again,
//! number for number, so that a client that was there misses nothing and runs nothing twice.
//!
//! It is written before anybody is told, but not synced: it outlives the daemon, not the machine. Where
//! it is gone, numbers go on after everything that can have been used.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use quintet_kernel::session::Turn;
use quintet_kernel::{CallId, Cursor, SessionId, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::identity::hex;
use super::line::{Frame, Hands};
use super::room::Client;

/// How much is kept of a telling; of one that is longer, nothing.
pub(super) const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Where it is kept for one conversation; nowhere, if that cannot be.
#[derive(Debug, Default)]
pub(super) struct Spool {
    path: Option<PathBuf>,
    file: Option<File>,
    /// How much is in it.
    bytes: usize,
}

/// What was told before.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Up to where in the session.
    pub(super) up_to: Cursor,
    pub(super) frames: Vec<Frame>,
    /// To whom, and how many of them each has heard for certain.
    pub(super) agents: HashMap<Client, u64>,
    /// How many bytes of the file are whole.
    good: usize,
}

/// What is written: a line each.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Entry {
    Told { up_to: String, frames: Vec<Written> },
    Client(Client),
    Heard { client: Client, frames: u64 },
}

#[derive(Serialize, Deserialize)]
struct Written {
    turn: String,
    text: String,
    stopped: Option<String>,
    calls: Vec<String>,
    shown: String,
}

impl Spool {
    /// That of a user's session, in a folder of its own.
    pub(super) fn of(folder: &Path, user: &str, session: &SessionId) -> Self {
        // Whatever users are called, it is no name of a file.
        let user = hex(&Sha256::digest(user)[..16]);
        Self { path: Some(folder.join(format!("{session}.{user}"))), ..Self::default() }
    }

    /// The same place, to look what is there.
    pub(super) fn aside(&self) -> Self {
        Self { path: self.path.clone(), ..Self::default() }
    }

    /// What was told before, if anything. Nothing is changed by looking.
    pub(super) fn kept(&self) -> Option<Kept> {
        let mut bytes = Vec::new();
        let most = MOST_BYTES as u64 + 1;
        File::open(self.path.as_ref()?).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        (bytes.len() <= MOST_BYTES).then(|| Kept::read(&bytes))?
    }

    /// Adds to what was told before, and not to what was cut off after it.
    pub(super) fn go_on(&mut self, kept: &Kept) {
        self.open(kept.good);
    }

    /// Begins anew.
    pub(super) fn begin(&mut self) {
        self.open(0);
    }

    /// Somebody listens.
    pub(super) fn listens(&mut self, agent: &Client) {
        self.write(&Entry::Client(agent.clone()));
    }

    /// A client has heard so many frames for certain.
    pub(super) fn heard(&mut self, client: &Client, frames: u64) {
        self.write(&Entry::Heard { client: client.clone(), frames });
    }

    /// This is about to be told.
    pub(super) fn tell(&mut self, frames: &[Frame], up_to: Cursor) {
        let frames = frames.iter().map(Written::of).collect();
        self.write(&Entry::Told { up_to: up_to.to_string(), frames });
    }

    /// All is told.
    pub(super) fn end(&mut self) {
        if let (Some(_), Some(path)) = (self.file.take(), &self.path) {
            drop(fs::remove_file(path));
        }
    }

    /// Opens it, to add to so many bytes of it.
    fn open(&mut self, bytes: usize) {
        let Some(path) = &self.path else { return };
        let folder = path
            .parent()
            .map(|folder| DirBuilder::new().recursive(true).mode(0o700).create(folder));
        let mut how = OpenOptions::new();
        how.append(true).create(true).mode(0o600);
        let opened = folder.unwrap_or(Ok(())).and_then(|()| how.open(path));
        let cut = opened.and_then(|file| file.set_len(bytes as u64).map(|()| file));
        (self.file, self.bytes) = (self.good(cut), bytes);
    }

    fn write(&mut self, entry: &Entry) {
        let Some(file) = &mut self.file else { return };
        let line = serde_json::to_string(entry).map_err(io::Error::from);
        let line = line.map(|line| format!("{line}\n"));
        self.bytes += line.as_ref().map_or(0, String::len);
        // With a gap in it, it would be of no use.
        if self.bytes > MOST_BYTES {
            return self.end();
        }
        let written = line.and_then(|line| file.write_all(line.as_bytes()));
        if self.good(written).is_none() {
            self.end();
        }
    }

    fn good<T>(&self, done: io::Result<T>) -> Option<T> {
        done.inspect_err(|error| tracing::warn!(%error, path = ?self.path, "cannot be kept")).ok()
    }
}

/// The sessions of which something is kept.
pub(super) fn sessions(folder: &Path) -> Vec<SessionId> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names.filter_map(|name| SessionId::parse(name.split_once('.')?.0)).collect()
}

/// Forgets what was told of sessions that nobody tells any more.
pub(super) fn sweep(folder: &Path, told: &[SessionId]) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let of = name.to_str().and_then(|name| name.split_once('.')).map(|(session, _)| session);
        if !told.iter().any(|session| of == Some(session.as_str())) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

impl Kept {
    /// Reads it up to where it is not whole: what was being written when the daemon ended was told to
    /// nobody.
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut kept = Self::default();
        let whole =
            bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
        for line in whole {
            let Ok(entry) = serde_json::from_slice(line) else { break };
            match entry {
                Entry::Client(client) => drop(kept.agents.entry(client).or_default()),
                Entry::Heard { client, frames } => drop(kept.agents.insert(client, frames)),
                Entry::Told { up_to, frames } => {
                    kept.up_to = Cursor::parse(&up_to)?;
                    kept.frames.extend(frames.into_iter().map(Written::frame));
                }
            }
            kept.good += line.len();
        }
        (!kept.frames.is_empty()).then_some(kept)
    }

    /// The turn that was told last, if its end was not, though it is over.
    pub(super) fn untold<'s>(&self, state: &'s State) -> Option<&'s Turn> {
        let turn = self.frames.iter().rev().find_map(|frame| {
            let called = |turn: &&Turn| match &turn.options.key {
                Some(key) => *key == frame.turn,
                None => turn.id.as_str() == frame.turn,
            };
            state.turns.iter().rev().find(called).map(|turn| (turn, &frame.turn))
        });
        let ended = |name: &String| {
            self.frames.iter().any(|frame| frame.turn == *name && frame.stopped.is_some())
        };
        turn.filter(|(_, name)| !ended(name)).map(|(turn, _)| turn)
    }

    /// Has nothing handed over again that is over, which nobody waits for.
    pub(super) fn settle(&mut self, waits: impl Fn(&CallId) -> bool) {
        for frame in &mut self.frames {
            let Some(hands) = &mut frame.hands else { continue };
            hands.calls.retain(&waits);
            if hands.calls.is_empty() {
                frame.text = std::mem::take(&mut hands.shown);
                frame.hands = None;
            }
        }
    }

    /// How many messages there were of each turn.
    pub(super) fn counts(&self) -> HashMap<String, u64> {
        let mut counts = HashMap::new();
        for frame in &self.frames {
            let sequence = serde_json::from_str::<Value>(&frame.text).ok();
            if let Some(sequence) = sequence.and_then(|it| it["sequence"].as_u64()) {
                counts.insert(frame.turn.clone(), sequence);
            }
        }
        counts
    }
}

impl Written {
    fn of(frame: &Frame) -> Self {
        let hands = frame.hands.as_deref();
        let calls = hands.iter().flat_map(|hands| &hands.calls).map(ToString::to_string);
        Self {
            turn: frame.turn.clone(),
            text: frame.text.clone(),
            stopped: frame.stopped.clone(),
            calls: calls.collect(),
            shown: hands.map(|hands| hands.shown.clone()).unwrap_or_default(),
        }
    }

    fn frame(self) -> Frame {
        let Self { turn, text, stopped, calls, shown } = self;
        let calls: Vec<CallId> = calls.iter().filter_map(|call| CallId::parse(call)).collect();
        let hands = (!calls.is_empty()).then(|| Box::new(Hands { calls, shown }));
        Frame { turn, text, stopped, hands }
    }
}

#[cfg(test)]
mod tests;
