//! Every conversation that is told, and who tells it: one task follows them all.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use quintet_kernel::event::{Event, Seq};
use quintet_kernel::message::Role;
use quintet_kernel::model::{Prompt, Usage};
use quintet_kernel::port::{BoxFuture, Error, Follow, SessionIndex, Sessions, Stamps};
use quintet_kernel::session::Call;
use quintet_kernel::{Cursor, Item, SessionId, State, Time, TurnId, prompt};
use tokio::sync::OnceCell;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::conversation::name_of;
use super::encode::{Beside, Link};
use super::line::Frame;
use super::room::{Room, Stage};
use super::serve::{Ports, Settings};
use super::spool::{self, Kept, Spool};
use super::wire::Context;

/// How often rooms that nobody needs are looked for.
const TIDY: Duration = Duration::from_secs(60);

/// A conversation, as its user calls it.
pub(super) type Name = (String, String);

/// Every conversation that is told.
pub(super) struct Rooms {
    sessions: Arc<dyn Sessions>,
    directory: Arc<dyn SessionIndex>,
    stamps: Arc<dyn Stamps>,
    open: Mutex<HashMap<Name, Arc<Room>>>,
    resumed: OnceCell<()>,
    /// What clients are told beside what they need.
    beside: Beside,
    opened: UnboundedSender<Teller>,
    /// How many connections there were.
    connections: AtomicU64,
    /// Where what was told is kept for the next daemon.
    spools: PathBuf,
}

/// Who tells a conversation.
struct Teller {
    room: Arc<Room>,
    link: Link,
    follow: Box<dyn Follow>,
    /// What was told before, by somebody who is gone; nothing once that is passed.
    before: Option<Before>,
}

/// What was told before.
struct Before {
    up_to: Cursor,
    /// In how many messages, by the clients' names of the turns; nothing if nobody knows.
    counts: Option<HashMap<String, u64>>,
}

/// What a teller heard, and what the model is asked now, where that is to be told.
type Heard = (Teller, Result<Option<Vec<Item>>, Error>, Option<Prompt>);

impl Rooms {
    /// All of them, and those that are yet to be told.
    pub(super) fn new(
        ports: &Ports,
        settings: &Settings,
    ) -> (Arc<Self>, impl Future<Output = ()> + Send + use<>) {
        let (opened, coming) = unbounded_channel();
        let rooms = Arc::new(Self {
            sessions: Arc::clone(&ports.sessions),
            directory: Arc::clone(&ports.directory),
            stamps: Arc::clone(&ports.stamps),
            open: Mutex::default(),
            resumed: OnceCell::new(),
            beside: settings.beside,
            opened,
            connections: AtomicU64::new(0),
            spools: settings.told.clone(),
        });
        let telling = Arc::clone(&rooms).tell(coming);
        (rooms, telling)
    }

    fn open_rooms(&self) -> MutexGuard<'_, HashMap<Name, Arc<Room>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of another connection.
    pub(super) fn connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The room of a conversation, if it is told. Its session is a name for it, too.
    pub(super) fn of(&self, name: &Name) -> Option<Arc<Room>> {
        let open = self.open_rooms();
        let named = |((user, _), room): &(&Name, &Arc<Room>)| {
            *user == name.0 && room.session.as_str() == name.1
        };
        open.get(name).or_else(|| open.iter().find(named).map(|(_, room)| room)).cloned()
    }

    /// The rooms of a user.
    pub(super) fn of_user(&self, user: &str) -> Vec<(Name, Arc<Room>)> {
        let open = self.open_rooms();
        let mine = open.iter().filter(|((owner, _), _)| owner == user);
        mine.map(|(name, room)| (name.clone(), Arc::clone(room))).collect()
    }

    /// How many turns are under way, of a user and of all.
    pub(super) fn busy(&self, user: &str) -> (usize, usize) {
        let open = self.open_rooms();
        let count = |mine: bool| {
            let rooms = open.iter().filter(|((owner, _), _)| !mine || owner == user);
            rooms.map(|(_, room)| room.busy()).sum()
        };
        (count(true), count(false))
    }

    /// The room of a conversation; from now on it is told. A turn that is under way is told of from
    /// its beginning; what was told before a restart is told again as it was, or not at all.
    pub(super) async fn enter(&self, name: &Name, session: &SessionId) -> Result<Arc<Room>, Error> {
        if let Some(room) = about(&self.open_rooms(), &name.0, session) {
            return Ok(room);
        }
        let state = self.sessions.view(session).await?;
        let name = &called(name, &state);
        let mut spool = Spool::of(&self.spools, &name.0, session);
        let kept = kept(&spool, &state).await;
        let asked = state.open.as_ref().and_then(|open| state.turn(&open.id));
        let asked = asked.or_else(|| kept.as_ref()?.untold(&state));
        let from = asked.map_or(state.head, |turn| turn.begins.saturating_sub(1));
        let follow = self.sessions.follow(session, Cursor::after(from)).await?;
        let mut open = self.open_rooms();
        if let Some(room) = about(&open, &name.0, session) {
            return Ok(room);
        }
        kept.iter().for_each(|kept| spool.go_on(kept));
        let room = Arc::new(Room::new((session.clone(), name.1.clone()), self.stamps.now(), spool));
        if let Some(before) = open.insert(name.clone(), Arc::clone(&room)) {
            before.shut.cancel();
        }
        // Whoever comes in before it is told knows that there is something to wait for.
        let before = Before::of(&room, asked.map(|turn| &turn.id), kept, state.head);
        let link = link(name, &state).telling(self.beside);
        let teller = Teller { room: Arc::clone(&room), link, follow, before };
        // If nobody tells any more, the daemon shuts down.
        let _ = self.opened.send(teller);
        Ok(room)
    }

    async fn tell(self: Arc<Self>, mut coming: UnboundedReceiver<Teller>) {
        self.resumed().await;
        let mut listening = FuturesUnordered::new();
        let mut tidy = interval(TIDY);
        loop {
            tokio::select! {
                teller = coming.recv() => match teller {
                    Some(teller) => listening.push(self.listen(teller)),
                    None => return,
                },
                Some(heard) = listening.next() => {
                    if let Some(teller) = heard.and_then(|heard| self.pass_on(heard)) {
                        listening.push(self.listen(teller));
                    }
                }
                _ = tidy.tick() => self.tidy(),
            }
        }
    }

    /// Everything that the last daemon left open is told from here on.
    pub(super) async fn resumed(&self) {
        self.resumed.get_or_init(|| self.resume()).await;
    }

    /// Tells of the turns that the end of the daemon cut off from here on, so that nobody who comes back
    /// later misses anything. What cannot be read is passed over.
    async fn resume(&self) {
        let Ok(open) = self.directory.open().await else { return };
        let mut over = spool::sessions(&self.spools);
        over.retain(|session| !open.contains(session));
        for session in &open {
            self.resume_one(session).await;
        }
        let mut told = open;
        for session in over {
            let room = self.resume_one(&session).await;
            told.extend(room.filter(|room| !room.is_empty()).map(|_| session));
        }
        spool::sweep(&self.spools, &told);
    }

    /// The room of a session that the last daemon told, unless nothing of it is to be told any more.
    async fn resume_one(&self, session: &SessionId) -> Option<Arc<Room>> {
        let card = self.sessions.card(session).await.ok()?;
        let entered = self.enter(&name_of(&card.labels)?, session).await;
        entered
            .inspect_err(|error| tracing::warn!(%error, %session, "a conversation cannot be told"))
            .ok()
    }

    fn listen(&self, mut teller: Teller) -> BoxFuture<'static, Option<Heard>> {
        let (sessions, stamps) = (Arc::clone(&self.sessions), Arc::clone(&self.stamps));
        Box::pin(async move {
            let Teller { room, link, follow, .. } = &mut teller;
            let shut: CancellationToken = room.shut.clone();
            let at = follow.position();
            let mut next = follow.next();
            let items = loop {
                tokio::select! {
                    items = &mut next => break items,
                    // Who had to run something is gone.
                    () = room.again.notified() => {
                        let (now, calls) = (stamps.now(), room.given_up());
                        let again = link.offer_again(|call| calls.contains(call), now);
                        room.tell(again, at, now);
                    }
                    () = shut.cancelled() => return None,
                }
            };
            drop(next);
            let shown = |item: &Item| teller.link.may_want_prompt(item);
            let prompt = match items.iter().flatten().flatten().any(shown) {
                true => {
                    sessions.view(&teller.room.session).await.ok().map(|it| prompt::assemble(&it))
                }
                false => None,
            };
            Some((teller, items, prompt))
        })
    }

    /// Tells what was heard; gives the teller back if there can be more.
    fn pass_on(&self, heard: Heard) -> Option<Teller> {
        let (mut teller, items, prompt) = heard;
        let Ok(Some(items)) = items else {
            self.leave(&teller.room);
            return None;
        };
        let now = self.stamps.now();
        let frames = items.iter().flat_map(|item| teller.tell(item, prompt.as_ref()));
        let mut frames: Vec<Frame> = frames.collect();
        frames.extend(teller.caught_up(now));
        teller.room.tell(frames, teller.follow.position(), now);
        teller.room.settled();
        Some(teller)
    }

    fn leave(&self, room: &Arc<Room>) {
        self.open_rooms().retain(|_, known| !Arc::ptr_eq(known, room));
        room.shut.cancel();
    }

    fn tidy(&self) {
        let now = self.stamps.now();
        self.open_rooms().retain(|_, room| {
            let stays = !room.idle(now);
            if !stays {
                room.dissolve();
            }
            stays
        });
    }
}

impl Teller {
    /// What is told of an item.
    fn tell(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        if let Item::Event(record) = item {
            self.note(&record.event);
        }
        let Some(item) = self.unheard(item) else {
            self.link.skip(item);
            return Vec::new();
        };
        let item = item.as_ref();
        let prompt = prompt.filter(|_| self.link.wants_prompt(item));
        self.link.encode(item, prompt)
    }

    /// What of an item was not told before.
    fn unheard<'i>(&mut self, item: &'i Item) -> Option<Cow<'i, Item>> {
        let Some(before) = &mut self.before else { return Some(Cow::Borrowed(item)) };
        let item = before.rest(item)?;
        if let Some(counts) = &mut before.counts {
            self.link.recount(&std::mem::take(counts));
        }
        // From here on offsets are those of another text.
        if matches!(&*item, Item::Event(it) if matches!(it.event, Event::StepStarted { .. })) {
            self.before = None;
        }
        Some(item)
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::MessageAdded { turn, role: Role::User, options, .. } if !options.recalled => {
                self.room.note(turn, Stage::Asked);
                options.key.iter().for_each(|key| self.room.release(key));
            }
            Event::CallCompleted { call, .. } => self.room.settle(call),
            Event::TurnCompleted { turn, .. }
            | Event::TurnFailed { turn, .. }
            | Event::TurnCancelled { turn, .. } => self.room.note(turn, Stage::Over),
            Event::CompactionRequested { .. } => {
                if let Some(request) = self.room.expected() {
                    self.link.compacting(&request);
                }
            }
            _ => {}
        }
    }

    /// Where all that was told before is passed, the client is asked again for what it still has to
    /// run: nobody knows whether it heard of that.
    fn caught_up(&mut self, now: Time) -> Vec<Frame> {
        match &self.before {
            Some(Before { up_to, counts: None }) if self.follow.position().seq >= up_to.seq => {
                self.before = None;
                self.link.offer_again(|_| true, now)
            }
            _ => Vec::new(),
        }
    }
}

impl Before {
    /// What was told of a turn that is to be told on: what was kept of it, or else all there is, in
    /// whatever words. Where there is no such turn, nothing of what comes was told.
    fn of(room: &Room, turn: Option<&TurnId>, kept: Option<Kept>, head: Seq) -> Option<Self> {
        match (kept, turn) {
            (Some(kept), _) => {
                let (up_to, counts) = (kept.up_to, Some(kept.counts()));
                room.resume(turn, kept);
                turn.map(|_| Self { up_to, counts })
            }
            (None, Some(turn)) => {
                room.note(turn, Stage::Asked);
                Some(Self { up_to: Cursor::after(head), counts: None })
            }
            (None, None) => None,
        }
    }

    /// What of an item comes after what was told.
    fn rest<'i>(&self, item: &'i Item) -> Option<Cow<'i, Item>> {
        match item {
            Item::Event(record) => (record.seq > self.up_to.seq).then_some(Cow::Borrowed(item)),
            Item::Text { position, seq, text, .. } => {
                // Text may have been told before it was in the journal.
                let new = position.offset.saturating_sub(self.up_to.offset);
                if *seq <= self.up_to.seq || new == 0 {
                    return None;
                }
                let new = usize::try_from(new).unwrap_or(usize::MAX);
                let from = text.floor_char_boundary(text.len().saturating_sub(new));
                let mut rest = item.clone();
                if let Item::Text { text, .. } = &mut rest {
                    *text = text[from..].into();
                }
                Some(Cow::Owned(rest))
            }
            Item::Progress { .. } => Some(Cow::Borrowed(item)),
        }
    }
}

/// A user's room about a session, under whatever name.
fn about(open: &HashMap<Name, Arc<Room>>, user: &str, session: &SessionId) -> Option<Arc<Room>> {
    let same = |((owner, _), room): &(&Name, &Arc<Room>)| owner == user && room.session == *session;
    open.iter().find(same).map(|(_, room)| Arc::clone(room))
}

/// The name that a conversation began with, where its user has several for it.
fn called(name: &Name, state: &State) -> Name {
    name_of(&state.labels).filter(|(user, _)| *user == name.0).unwrap_or_else(|| name.clone())
}

/// What was told of a session before, if anything. It hands over what is still open, and no more: the
/// session may have gone on since.
async fn kept(spool: &Spool, state: &State) -> Option<Kept> {
    let spool = spool.aside();
    let mut kept = tokio::task::spawn_blocking(move || spool.kept()).await.ok()??;
    let open = state.open.as_ref();
    kept.settle(|call| open.and_then(|open| open.call(call)).is_some_and(Call::with_client));
    Some(kept)
}

/// A conversation, told from where its open turn begins on, or else from now on.
fn link(name: &Name, state: &State) -> Link {
    let (user, conversation) = name.clone();
    let context = Context {
        session_id: Some(state.id.to_string()),
        user_id: Some(user),
        conversation_ref: Some(conversation),
        turn_ref: None,
    };
    let open = state.open.as_ref().map_or(0, |open| open.usage.total());
    let spent = Usage { input: state.usage.total().saturating_sub(open), ..Usage::default() };
    Link::new(context, &state.toolset, spent)
}
