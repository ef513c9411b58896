//! One telling of a conversation for all who listen to it: its frames are numbered once and kept for
//! as long as the turn lasts, and each listener reads them at his own pace. So nothing is queued for a
//! client, and one that was away goes on where it was.

mod runners;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::{CallId, Cursor, SessionId, Time, TurnId};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::runners::Runners;
use super::line::{Frame, Hands};
use super::spool::{Kept, MOST_BYTES, Spool};

/// How much a listener is given at once.
const AT_ONCE: usize = 64;
/// How long the end of a turn is kept for a client that was away.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// How long a room stays that somebody may just be coming into.
const ENTERED: Duration = Duration::from_secs(10);

/// What a client calls its agent, if it has a name for it: one that comes back has the same.
pub(super) type Client = Option<String>;

/// A conversation that is told.
#[derive(Debug)]
pub(super) struct Room {
    /// The session behind it.
    pub(super) session: SessionId,
    /// What it is called in what is told.
    pub(super) conversation: String,
    /// Says that nobody needs it any more.
    pub(super) shut: CancellationToken,
    /// Rung when calls are to be handed over to somebody else.
    pub(super) again: Notify,
    log: Mutex<Log>,
    bell: watch::Sender<()>,
}

/// What was told.
#[derive(Debug, Default)]
struct Log {
    /// How many frames are not kept any more.
    dropped: u64,
    frames: VecDeque<Told>,
    bytes: usize,
    /// The first frame of the turn that was told last.
    turn: u64,
    /// Turns that were asked for and are not over.
    open: HashSet<TurnId>,
    /// Whose conversation it is, and how far each of them has heard it for certain.
    agents: HashMap<Client, u64>,
    /// Turns that somebody has stopped, by the client's name for them: he wants no more of them.
    stopped: HashSet<(Client, String)>,
    /// Turns that somebody is about to stop: he is told nothing of them until that is decided.
    stopping: HashSet<(Client, String)>,
    /// Who listens.
    seats: HashMap<u64, Listener>,
    /// Who runs what.
    runners: Runners,
    /// The seats that there ever were.
    taken: u64,
    /// When it was last told of.
    told: Time,
    /// Who asked for a summary that is yet to be told of.
    expected: Option<String>,
    /// Who is about to ask.
    reserved: HashSet<String>,
    /// Where it is kept for the next daemon.
    spool: Spool,
}

/// Who listens.
#[derive(Debug)]
struct Listener {
    who: Who,
    /// How far he has read.
    next: u64,
}

/// A connection, and what its client calls itself, if it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) connection: u64,
    pub(super) client: Option<String>,
}

/// A frame.
#[derive(Debug)]
struct Told {
    /// The turn, by the client's name for it.
    turn: String,
    text: Arc<str>,
    /// What it says to whoever has stopped the turn; nothing, but at its end.
    stopped: Option<Arc<str>>,
    /// The calls that it hands over, until they are over.
    hands: Option<Box<Hands>>,
    /// Whether a client has claimed them: it may have run them.
    claimed: bool,
}

/// What a listener is sent.
#[derive(Debug)]
pub(super) enum Sent {
    /// A message.
    Text(Arc<str>),
    /// A message that hands calls over.
    Offer(Offered),
}

/// Calls that a listener may run if it claims them.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) calls: Vec<CallId>,
    /// The message for whoever runs them.
    pub(super) text: Arc<str>,
    /// The message for everybody else.
    pub(super) shown: Arc<str>,
}

/// What is told of a turn itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It was asked for.
    Asked,
    /// It is over.
    Over,
}

/// A listener.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) room: Arc<Room>,
    id: u64,
    bell: watch::Receiver<()>,
}

impl Room {
    pub(super) fn new(
        (session, conversation): (SessionId, String),
        now: Time,
        spool: Spool,
    ) -> Self {
        let (shut, bell, again) = Default::default();
        let log = Mutex::new(Log { told: now, spool, ..Log::default() });
        Self { session, conversation, shut, again, log, bell }
    }

    /// Goes on with what another daemon told, and with the turn that is not told to its end, if there is
    /// one.
    pub(super) fn resume(&self, turn: Option<&TurnId>, kept: Kept) {
        let mut log = self.log();
        log.open.extend(turn.cloned());
        log.agents.extend(kept.agents);
        log.push(kept.frames);
    }

    /// A client has claimed these calls.
    pub(super) fn claimed(&self, calls: &[CallId]) {
        for told in &mut self.log().frames {
            let hands = |hands: &Hands| hands.calls.iter().any(|call| calls.contains(call));
            told.claimed |= told.hands.as_deref().is_some_and(hands);
        }
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how a turn stands.
    pub(super) fn note(&self, turn: &TurnId, stage: Stage) {
        let mut log = self.log();
        match stage {
            Stage::Asked => {
                if log.open.is_empty() {
                    log.turn = log.end();
                    log.stopped.clear();
                    let Log { spool, agents, .. } = &mut *log;
                    spool.begin();
                    agents.keys().for_each(|agent| spool.listens(agent));
                }
                log.open.insert(turn.clone());
            }
            Stage::Over => {
                log.open.remove(turn);
                if log.open.is_empty() {
                    let Log { runners, reserved, .. } = &mut *log;
                    runners.forget(|turn| !reserved.contains(turn));
                }
            }
        }
    }

    /// Whether nothing was told yet.
    pub(super) fn is_empty(&self) -> bool {
        self.log().end() == 0
    }

    /// All is told that there is; where everybody has heard it, nothing of it is needed after a restart.
    pub(super) fn settled(&self) {
        let mut log = self.log();
        if log.open.is_empty() && log.is_heard() {
            log.spool.end();
        }
    }

    /// Nobody needs it any more, nor after a restart.
    pub(super) fn dissolve(&self) {
        self.log().spool.end();
        self.shut.cancel();
    }

    /// Somebody wants to ask, under this name, and runs what that leads to.
    pub(super) fn reserve(&self, key: &str, connection: u64) {
        let mut log = self.log();
        log.runners.choose(key, connection);
        log.reserved.insert(key.into());
    }

    /// He has asked.
    pub(super) fn release(&self, key: &str) {
        self.log().reserved.remove(key);
    }

    /// Nothing comes of what he wanted to ask.
    pub(super) fn forget(&self, key: &str) {
        let mut log = self.log();
        log.reserved.remove(key);
        if log.open.is_empty() {
            log.runners.forget(|turn| turn == key);
        }
    }

    /// The calls that were handed to somebody who is gone and never heard of them.
    pub(super) fn given_up(&self) -> Vec<CallId> {
        self.log().runners.given_up()
    }

    /// A call is over: whoever hears of it later is not to run it.
    pub(super) fn settle(&self, call: &CallId) {
        let mut log = self.log();
        let Log { frames, bytes, .. } = &mut *log;
        for told in frames {
            let Some(hands) = &mut told.hands else { continue };
            hands.calls.retain(|open| open != call);
            if hands.calls.is_empty() {
                *bytes = (*bytes + hands.shown.len()).saturating_sub(told.text.len());
                told.text = hands.shown.as_str().into();
                told.hands = None;
            }
        }
    }

    /// Tells everybody what is up to here in the session.
    pub(super) fn tell(&self, frames: Vec<Frame>, up_to: Cursor, at: Time) {
        if frames.is_empty() {
            return;
        }
        let mut log = self.log();
        log.told = at;
        log.spool.tell(&frames, up_to);
        log.push(frames);
        log.trim();
        drop(log);
        self.bell.send_replace(());
    }

    /// Somebody asks for a summary: it is told under the name of his message.
    pub(super) fn expect(&self, request: &str) {
        self.log().expected = Some(request.into());
    }

    /// Who asked for a summary; nobody, once that was told.
    pub(super) fn expected(&self) -> Option<String> {
        self.log().expected.take()
    }

    /// How many turns were asked for and are not over.
    pub(super) fn busy(&self) -> usize {
        let log = self.log();
        log.open.len() + log.reserved.len()
    }

    /// Whether somebody may be waiting for more of it. Where nobody knows whose it is, it may be his.
    pub(super) fn awaited_by(&self, agent: &Client) -> bool {
        let log = self.log();
        let his = log.agents.is_empty() || log.agents.contains_key(agent);
        his && log.awaited_by(agent)
    }

    /// Somebody wants to stop a turn: until it is decided whether he can, he is told nothing of it.
    pub(super) fn stopping(self: &Arc<Self>, agent: &Client, turn: &str) -> Stopping {
        let what = (agent.clone(), turn.to_owned());
        self.log().stopping.insert(what.clone());
        Stopping { room: Arc::clone(self), what }
    }

    /// Somebody has heard it, up to here, for certain.
    pub(super) fn heard(&self, agent: &Client, up_to: u64) {
        let mut log = self.log();
        if let Some(heard) = log.agents.get_mut(agent) {
            *heard = up_to.max(*heard);
        }
        let (end, from) = (log.end(), log.turn);
        if !log.open.is_empty() {
            return;
        }
        log.spool.heard(agent, up_to.saturating_sub(from));
        let over = log.agents.values().all(|heard| *heard == end);
        if over {
            log.spool.end();
        }
        if over && log.seats.values().all(|seat| seat.next == end) {
            log.turn = end;
            log.stopped.clear();
            log.trim();
        }
    }

    /// Whether nobody will ask for it any more.
    pub(super) fn idle(&self, now: Time) -> bool {
        let log = self.log();
        let silent = now.since(log.told);
        let kept = silent < if log.is_heard() { ENTERED } else { KEPT };
        log.seats.is_empty() && log.open.is_empty() && log.reserved.is_empty() && !kept
    }

    /// Listens, from the beginning of the turn under way on, or of one whose end he has not heard.
    pub(super) fn sit(self: &Arc<Self>, who: Who) -> Seat {
        let agent = &who.client.clone();
        let bell = self.bell.subscribe();
        let mut log = self.log();
        let from = if log.awaited_by(agent) { log.turn } else { log.end() };
        if !log.agents.contains_key(agent) {
            log.agents.insert(agent.clone(), from);
            log.spool.listens(agent);
        }
        log.taken += 1;
        let id = log.taken;
        // What is not kept any more, nobody can be told.
        let next = from.max(log.dropped);
        log.seats.insert(id, Listener { who, next });
        Seat { room: Arc::clone(self), id, bell }
    }
}

impl Log {
    fn end(&self) -> u64 {
        self.dropped + self.frames.len() as u64
    }

    /// Whether everybody whose conversation it is has heard all of it.
    fn is_heard(&self) -> bool {
        match self.agents.is_empty() {
            true => self.turn == self.end(),
            false => self.agents.values().all(|heard| *heard == self.end()),
        }
    }

    fn awaited_by(&self, agent: &Client) -> bool {
        // Where nobody has come yet, nobody has heard it.
        let new = if self.agents.is_empty() { self.turn } else { self.end() };
        !self.open.is_empty() || self.agents.get(agent).copied().unwrap_or(new) < self.end()
    }

    fn push(&mut self, frames: Vec<Frame>) {
        for Frame { turn, text, hands, stopped, .. } in frames {
            if let Some(hands) = &hands {
                self.supersede(&hands.calls);
            }
            self.bytes += text.len();
            let (text, stopped) = (text.into(), stopped.map(Into::into));
            self.frames.push_back(Told { turn, text, stopped, hands, claimed: false });
        }
    }

    /// Lets go of what everybody has read and no client that was away would want, and of the oldest
    /// where it is too much.
    fn trim(&mut self) {
        let wanted = self.seats.values().map(|seat| seat.next).fold(self.turn, u64::min);
        while self.dropped < wanted || self.bytes > MOST_BYTES {
            let Some(frame) = self.frames.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(frame.text.len());
            self.dropped += 1;
        }
    }

    /// What a listener has not read yet, as much of it as he is given at once. It may be nothing for
    /// him, and he has read it nevertheless.
    fn read(&mut self, seat: u64) -> Read {
        let Some(Listener { who, next }) = self.seats.get(&seat) else { return Read::Behind };
        let (who, next) = (who.clone(), *next);
        let Some(skipped) = next.checked_sub(self.dropped) else { return Read::Behind };
        let (mut heard, mut read) = (Vec::new(), 0);
        let Self { frames, seats, runners, stopped, stopping, .. } = self;
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        for told in frames.iter().skip(skipped).take(AT_ONCE) {
            if is_among(stopping, &who.client, told) {
                break;
            }
            read += 1;
            heard.extend(match &told.hands {
                _ if is_among(stopped, &who.client, told) => told.stopped.clone().map(Sent::Text),
                Some(hands) if !runners.may_run(&who, told, seats) => {
                    Some(Sent::Text(hands.shown.as_str().into()))
                }
                Some(hands) => Some(Sent::Offer(Offered {
                    calls: hands.calls.clone(),
                    text: Arc::clone(&told.text),
                    shown: hands.shown.as_str().into(),
                })),
                None => Some(Sent::Text(Arc::clone(&told.text))),
            });
        }
        seats.entry(seat).and_modify(|listener| listener.next = next + read);
        if read > 0 { Read::Heard(heard) } else { Read::Nothing }
    }

    /// What handed these calls over does so no more: they are handed over anew.
    fn supersede(&mut self, calls: &[CallId]) {
        for told in &mut self.frames {
            let same = |hands: &mut Box<Hands>| hands.calls.iter().any(|call| calls.contains(call));
            if let Some(hands) = told.hands.take_if(same) {
                self.bytes = (self.bytes + hands.shown.len()).saturating_sub(told.text.len());
                told.text = hands.shown.into();
            }
        }
    }
}

/// What there is for a listener.
enum Read {
    Heard(Vec<Sent>),
    Nothing,
    /// More than is kept was told since: he missed something.
    Behind,
}

/// A turn that somebody is about to stop.
#[derive(Debug)]
pub(super) struct Stopping {
    room: Arc<Room>,
    what: (Client, String),
}

impl Stopping {
    /// It is stopped: he wants to hear no more of it but that it is over.
    pub(super) fn done(self) {
        self.room.log().stopped.insert(self.what.clone());
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        self.room.log().stopping.remove(&self.what);
        self.room.bell.send_replace(());
    }
}

/// Whether somebody has said this of the turn that a frame is about.
fn is_among(said: &HashSet<(Client, String)>, agent: &Client, told: &Told) -> bool {
    !said.is_empty() && said.contains(&(agent.clone(), told.turn.clone()))
}

impl Seat {
    /// What comes next, as much of it as is there; nothing once the room is shut, or he is too far
    /// behind.
    pub(super) async fn next(&mut self) -> Option<Vec<Sent>> {
        loop {
            self.bell.mark_unchanged();
            let read = self.room.log().read(self.id);
            match read {
                Read::Heard(frames) => return Some(frames),
                Read::Behind => return None,
                Read::Nothing => {}
            }
            tokio::select! {
                changed = self.bell.changed() => changed.ok()?,
                () = self.room.shut.cancelled() => return None,
            }
        }
    }

    /// How far it has read.
    pub(super) fn position(&self) -> u64 {
        self.room.log().seats.get(&self.id).map(|seat| seat.next).unwrap_or_default()
    }

    /// Whether more was told than is kept since he last read.
    pub(super) fn is_behind(&self) -> bool {
        let log = self.room.log();
        log.seats.get(&self.id).is_some_and(|seat| seat.next < log.dropped)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut log = self.room.log();
        let Some(gone) = log.seats.remove(&self.id) else { return };
        if log.give_up(gone.who.connection) {
            self.room.again.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
