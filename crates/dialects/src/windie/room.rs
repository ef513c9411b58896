//! One telling of a conversation for all who listen to it: its frames are numbered once and kept for
//! as long as the turn lasts, and each listener reads them at his own pace. So nothing is queued for a
//! client, and one that was away goes on where it was.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quintet_kernel::{CallId, Cursor, SessionId, Time, TurnId};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::line::{Frame, Hands};
use super::spool::{Kept, MOST_BYTES, Spool};

/// How much a listener is given at once.
const AT_ONCE: usize = 64;
/// How long the end of a turn is kept for a client that was away.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// How long a room stays that somebody may just be coming into.
const ENTERED: Duration = Duration::from_secs(10);

/// What a client calls its agent, if it has a name for it: one that comes back has the same.
pub(super) type Agent = Option<String>;

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
    agents: HashMap<Agent, u64>,
    /// Turns that somebody has stopped, by the client's name for them: he wants no more of them.
    stopped: HashSet<(Agent, String)>,
    /// Who listens.
    seats: HashMap<u64, Listener>,
    /// Who runs the calls of each turn that asks for some.
    runners: HashMap<String, u64>,
    /// The seats that there ever were.
    taken: u64,
    /// When it was last told of.
    told: Time,
    /// Who asked for a summary that is yet to be told of.
    expected: Option<String>,
    /// Who is about to ask.
    reserved: HashSet<String>,
    /// The clients' names for the histories that their queries lead to.
    revisions: HashMap<String, String>,
    /// Queries whose answers should be spoken.
    spoken: HashSet<String>,
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
    agent: Agent,
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

    /// Goes on with a turn that another daemon told of.
    pub(super) fn resume(&self, turn: &TurnId, kept: Kept) {
        let mut log = self.log();
        log.open.insert(turn.clone());
        log.revisions.extend(kept.revisions);
        log.agents.extend(kept.agents.into_iter().map(|agent| (agent, 0)));
        log.push(kept.frames);
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
                    let Log { spool, agents, revisions, .. } = &mut *log;
                    spool.begin();
                    agents.keys().for_each(|agent| spool.listens(agent));
                    revisions.iter().for_each(|named| spool.revises(named));
                }
                log.open.insert(turn.clone());
            }
            Stage::Over => {
                log.open.remove(turn);
                if log.open.is_empty() {
                    let Log { runners, reserved, .. } = &mut *log;
                    runners.retain(|key, _| reserved.contains(key));
                }
            }
        }
    }

    /// Nothing of what was told is needed after a restart.
    pub(super) fn settled(&self) {
        let mut log = self.log();
        if log.open.is_empty() {
            log.spool.end();
        }
    }

    /// Somebody wants to ask, under this name, and runs what that leads to.
    pub(super) fn reserve(&self, key: &str, revision: Option<&str>, connection: u64) {
        let mut log = self.log();
        log.runners.insert(key.into(), connection);
        log.reserved.insert(key.into());
        if let Some(revision) = revision {
            let (query, revision) = (key.to_owned(), revision.to_owned());
            log.spool.revises((&query, &revision));
            log.revisions.insert(query, revision);
        }
    }

    /// What the client calls the history that a query led to, if it has a name for it; told once.
    pub(super) fn revision(&self, key: &str) -> Option<String> {
        self.log().revisions.remove(key)
    }

    /// The answer to a query should be spoken.
    pub(super) fn speak(&self, key: &str) {
        self.log().spoken.insert(key.into());
    }

    /// Whether the answer to a query should be spoken; told once.
    pub(super) fn unspoken(&self, key: &str) -> bool {
        self.log().spoken.remove(key)
    }

    /// He has asked, or does not want to any more.
    pub(super) fn release(&self, key: &str) {
        self.log().reserved.remove(key);
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
    pub(super) fn awaited_by(&self, agent: &Agent) -> bool {
        let log = self.log();
        let his = log.agents.is_empty() || log.agents.contains_key(agent);
        his && log.awaited_by(agent)
    }

    /// Somebody has stopped a turn.
    pub(super) fn stop(&self, agent: &Agent, turn: &str) {
        self.log().stopped.insert((agent.clone(), turn.into()));
    }

    /// Somebody has heard it, up to here, for certain.
    pub(super) fn heard(&self, agent: &Agent, up_to: u64) {
        let mut log = self.log();
        if let Some(heard) = log.agents.get_mut(agent) {
            *heard = up_to.max(*heard);
        }
        let end = log.end();
        let over = log.open.is_empty() && log.agents.values().all(|heard| *heard == end);
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
        let heard = match log.agents.is_empty() {
            true => log.turn == log.end(),
            false => log.agents.values().all(|heard| *heard == log.end()),
        };
        let kept = silent < if heard { ENTERED } else { KEPT };
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
        log.follow_on(&who);
        log.seats.insert(id, Listener { who, next: from });
        Seat { room: Arc::clone(self), agent: agent.clone(), id, bell }
    }
}

impl Log {
    fn end(&self) -> u64 {
        self.dropped + self.frames.len() as u64
    }

    fn awaited_by(&self, agent: &Agent) -> bool {
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
            self.frames.push_back(Told { turn, text, stopped, hands });
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
    fn read(&mut self, seat: u64, agent: &Agent) -> Option<Vec<Arc<str>>> {
        let listener = self.seats.get(&seat)?;
        let (next, who) = (listener.next.max(self.dropped), listener.who.connection);
        let skipped = usize::try_from(next - self.dropped).unwrap_or(usize::MAX);
        let Self { frames, seats, runners, stopped, .. } = self;
        let frames: Vec<&Told> = frames.iter().skip(skipped).take(AT_ONCE).collect();
        let mut said = |told: &&Told| match &told.hands {
            _ if is_stopped(stopped, agent, told) => told.stopped.clone(),
            Some(hands) if !runs(who, &told.turn, (seats, runners)) => {
                Some(hands.shown.as_str().into())
            }
            _ => Some(Arc::clone(&told.text)),
        };
        let heard = frames.iter().filter_map(&mut said).collect();
        let read = frames.len() as u64;
        seats.entry(seat).and_modify(|listener| listener.next = next + read);
        (read > 0).then_some(heard)
    }
}

impl Log {
    /// A client that comes back on another connection goes on with what it ran, though its old one may
    /// not be known to be gone.
    fn follow_on(&mut self, who: &Who) {
        let before = self.seats.values().filter(|seat| seat.who.client == who.client);
        let before: Vec<u64> = before.map(|seat| seat.who.connection).collect();
        for runner in self.runners.values_mut() {
            if who.client.is_some() && before.contains(runner) {
                *runner = who.connection;
            }
        }
    }

    /// Takes calls from a listener who is gone, for others who are there; says whether there are any.
    fn give_up(&mut self, connection: u64) -> bool {
        if !self.seats.values().any(|seat| seat.who.connection != connection) {
            return false;
        }
        let runners = &self.runners;
        let his = self.frames.iter().filter(|told| runners.get(&told.turn) == Some(&connection));
        let calls =
            his.filter_map(|told| told.hands.as_ref()).flat_map(|hands| hands.calls.clone());
        let calls: Vec<CallId> = calls.collect();
        self.supersede(&calls);
        !calls.is_empty()
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

/// Whether a listener wants no more of what a frame is about.
fn is_stopped(stopped: &HashSet<(Agent, String)>, agent: &Agent, told: &Told) -> bool {
    !stopped.is_empty() && stopped.contains(&(agent.clone(), told.turn.clone()))
}

/// Whether a connection runs the calls of a turn: the one that asked does, or where that is gone the
/// first that hears of them.
fn runs(
    connection: u64,
    turn: &str,
    (seats, runners): (&HashMap<u64, Listener>, &mut HashMap<String, u64>),
) -> bool {
    let there = |runner: &u64| seats.values().any(|seat| seat.who.connection == *runner);
    match runners.get(turn).copied().filter(there) {
        Some(runner) => runner == connection,
        None => {
            runners.insert(turn.into(), connection);
            true
        }
    }
}

impl Seat {
    /// What comes next, as much of it as is there; nothing once the room is shut.
    pub(super) async fn next(&mut self) -> Option<Vec<Arc<str>>> {
        loop {
            self.bell.mark_unchanged();
            let frames = self.room.log().read(self.id, &self.agent);
            if frames.is_some() {
                return frames;
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
mod tests {
    use quintet_kernel::id::Fresh as _;

    use super::*;

    fn told(room: &Room, words: &[&str]) {
        let frame = |word: &&str| Frame {
            turn: "t".into(),
            last: false,
            text: (*word).into(),
            stopped: (*word == "end").then(|| "stopped".into()),
            hands: None,
        };
        room.tell(words.iter().map(frame).collect(), Cursor::START, Time::default());
    }

    fn turn(name: &str) -> TurnId {
        TurnId::named(name.into())
    }

    async fn heard(seat: &mut Seat) -> Vec<String> {
        let frames = seat.next().await.unwrap();
        seat.room.heard(&seat.agent, seat.position());
        frames.iter().map(ToString::to_string).collect()
    }

    fn sit(room: &Arc<Room>, agent: &Agent) -> Seat {
        room.sit(Who { connection: 0, client: agent.clone() })
    }

    fn who(connection: u64, client: Option<&str>) -> Who {
        Who { connection, client: client.map(Into::into) }
    }

    fn hand(room: &Room) {
        let calls = vec![CallId::named("c1".into())];
        let hands = Some(Box::new(Hands { calls, shown: "look".into() }));
        let (turn, text) = ("q".into(), "run".into());
        let frame = Frame { turn, last: false, text, stopped: None, hands };
        room.tell(vec![frame], Cursor::START, Time::default());
    }

    #[tokio::test]
    async fn only_who_asked_runs_what_that_leads_to() {
        let room = room();
        let (mut asked, mut other) = (room.sit(who(1, None)), room.sit(who(2, None)));
        room.reserve("q", None, 1);
        room.note(&turn("t1"), Stage::Asked);
        hand(&room);
        assert_eq!(heard(&mut other).await, ["look"]);
        assert_eq!(heard(&mut asked).await, ["run"]);
        // Once he is gone, those who are there are asked again, and what he heard hands over nothing.
        drop(asked);
        room.again.notified().await;
        assert_eq!(heard(&mut room.sit(who(3, None))).await, ["look"]);
        hand(&room);
        assert_eq!(heard(&mut other).await, ["run"]);
    }

    #[tokio::test]
    async fn who_comes_back_runs_what_he_ran() {
        let room = room();
        let old = room.sit(who(1, Some("agent")));
        room.reserve("q", None, 1);
        room.note(&turn("t1"), Stage::Asked);
        hand(&room);
        // The old connection may hang for a while.
        let mut back = room.sit(who(2, Some("agent")));
        assert_eq!(heard(&mut back).await, ["run"]);
        assert_eq!(heard(&mut room.sit(who(3, Some("another")))).await, ["look"]);
        drop(old);
    }

    fn room() -> Arc<Room> {
        Arc::new(Room::new(
            (SessionId::named("s".into()), "c".into()),
            Time::default(),
            Spool::default(),
        ))
    }

    #[tokio::test]
    async fn each_reads_at_his_own_pace() {
        let room = room();
        room.note(&turn("t1"), Stage::Asked);
        let (mut fast, mut slow) = (sit(&room, &None), sit(&room, &None));
        told(&room, &["a"]);
        assert_eq!(heard(&mut fast).await, ["a"]);
        told(&room, &["b", "c"]);
        assert_eq!(heard(&mut fast).await, ["b", "c"]);
        assert_eq!(heard(&mut slow).await, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn who_was_away_hears_the_turn_again_until_somebody_heard_its_end() {
        let room = room();
        room.note(&turn("t1"), Stage::Asked);
        let mut first = sit(&room, &None);
        told(&room, &["a"]);
        assert_eq!(heard(&mut first).await, ["a"]);
        drop(first);
        told(&room, &["b"]);
        room.note(&turn("t1"), Stage::Over);
        let mut second = sit(&room, &None);
        assert_eq!(heard(&mut second).await, ["a", "b"]);
        let third = sit(&room, &None);
        drop(second);
        room.note(&turn("t2"), Stage::Asked);
        told(&room, &["c"]);
        let mut third = third;
        assert_eq!(heard(&mut third).await, ["c"]);
    }

    #[tokio::test]
    async fn a_room_is_kept_while_somebody_may_come_back() {
        let room = room();
        let later = Time::default().after(Duration::from_secs(60));
        assert!(room.idle(later));
        room.note(&turn("t1"), Stage::Asked);
        assert!(!room.idle(later) && room.awaited_by(&None));
        told(&room, &["a"]);
        room.note(&turn("t1"), Stage::Over);
        assert!(!room.idle(later) && room.awaited_by(&None));
        assert!(room.idle(later.after(KEPT)));
        let mut seat = sit(&room, &None);
        heard(&mut seat).await;
        assert!(!room.idle(later));
        drop(seat);
        assert!(room.idle(later) && !room.awaited_by(&None));
    }

    #[tokio::test]
    async fn a_call_that_is_over_is_not_handed_over_again() {
        let room = room();
        room.note(&turn("t1"), Stage::Asked);
        let (one, two) = (CallId::named("c1".into()), CallId::named("c2".into()));
        let calls = vec![one.clone(), two.clone()];
        let hands = Some(Box::new(Hands { calls, shown: "nothing to run".into() }));
        let frame =
            Frame { turn: "t".into(), last: false, text: "run both".into(), hands, stopped: None };
        room.tell(vec![frame], Cursor::START, Time::default());
        room.settle(&one);
        assert_eq!(heard(&mut sit(&room, &None)).await, ["run both"]);
        room.settle(&two);
        assert_eq!(heard(&mut sit(&room, &None)).await, ["nothing to run"]);
    }

    #[tokio::test]
    async fn what_was_given_to_a_dead_client_is_told_again() {
        let (room, agent) = (room(), Some("a".to_owned()));
        room.note(&turn("t1"), Stage::Asked);
        let mut dead = sit(&room, &agent);
        told(&room, &["a", "end"]);
        room.note(&turn("t1"), Stage::Over);
        dead.next().await.unwrap();
        drop(dead);
        assert!(room.awaited_by(&agent) && !room.awaited_by(&None));
        let mut back = sit(&room, &agent);
        assert_eq!(heard(&mut back).await, ["a", "end"]);
        assert!(!room.awaited_by(&agent));
    }

    #[tokio::test]
    async fn who_stopped_a_turn_hears_its_end_alone() {
        let (room, agent) = (room(), Some("a".to_owned()));
        room.note(&turn("t1"), Stage::Asked);
        let (mut one, mut other) = (sit(&room, &agent), sit(&room, &None));
        room.stop(&agent, "t");
        told(&room, &["a", "end"]);
        assert_eq!(heard(&mut one).await, ["stopped"]);
        assert_eq!(heard(&mut other).await, ["a", "end"]);
    }

    #[tokio::test]
    async fn a_shut_room_tells_nothing_more() {
        let room = room();
        let mut seat = sit(&room, &None);
        room.shut.cancel();
        assert!(seat.next().await.is_none());
    }
}
