//! Subscriptions of a connection to conversations: a cursor over each session and its own encoder.
//!
//! A turn is followed from its first event on, and its frames are numbered by the encoder alone. They therefore
//! have the same numbers on every connection and after a restart, and sent frames need not be stored.

use std::collections::VecDeque;
use std::future::pending;

use axum::extract::ws::{Message, WebSocket};
use futures_util::future::select_all;
use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, Record};
use quintet_kernel::model::{ModelRef, Prompt};
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::session::Call;
use quintet_kernel::{CallId, Cursor, Item, SessionId, State, Time, prompt};

use super::acknowledged::Client;
use super::coordinates::Located;
use super::{Connection, Gone, send};
use crate::windie::encode::turn_frames::Frame;
use crate::windie::encode::{Link, OptionalEvents};
use crate::windie::wire::Context;
use crate::windie::wire::query::REVISION;

/// A conversation that a connection follows.
pub(super) struct Subscription {
    pub(super) session: SessionId,
    pub(super) link: Link,
    /// The session as it was at the last item that was read: what is shown of a prompt or a history
    /// is of its own turn, whatever happened since.
    state: State,
    follow: Box<dyn Follower>,
    /// What is not sent yet, because it is open who runs the calls of the first frame.
    waiting: VecDeque<Frame>,
    /// True while the places of a frame are being looked for: what comes after it waits.
    is_searching: bool,
    /// How many stops of its turns are not carried out yet: until then nothing of it is sent.
    pub(super) stopping: usize,
    /// When the turn ended whose end was sent last.
    ended: Option<Time>,
    /// The ping that was sent after that, until it is answered.
    ping: Option<u64>,
}

/// What is new in one of several sessions.
type News = (usize, Result<Option<Vec<Item>>, Error>);

/// Waits for news of one of the conversations that are not held back.
pub(super) async fn next(subscriptions: &mut [Subscription]) -> News {
    let told = subscriptions.iter_mut().enumerate().filter(|(_, it)| it.stopping == 0);
    let news = told.map(|(nth, it)| Box::pin(async move { (nth, it.follow.next().await) }));
    let news: Vec<_> = news.collect();
    if news.is_empty() { pending().await } else { select_all(news).await.0 }
}

impl Subscription {
    /// Has the client hear no more of a turn but that it is over.
    pub(super) fn stop(&mut self, turn: &str) {
        self.waiting.iter_mut().filter(|frame| frame.turn == turn).for_each(Frame::show);
        self.link.stop(turn);
    }

    /// True once everything was read that was there when following began.
    fn has_caught_up(&self) -> bool {
        self.follow.position().seq >= self.follow.head()
    }

    /// Takes an item into the state. Text comes in other pieces than the journal has it in, which makes
    /// no difference to what was said.
    fn evolve(&mut self, item: &Item) {
        match item {
            Item::Event(record) => self.state.replay([&**record]),
            Item::Text { seq, turn, step, channel, text, at, .. } => {
                let event = Event::TextAppended {
                    turn: turn.clone(),
                    step: step.clone(),
                    offset: 0,
                    channel: *channel,
                    text: text.to_string(),
                    pieces: Vec::new(),
                };
                self.state.replay([&Record { seq: *seq, at: *at, event }]);
            }
            Item::Progress { .. } => {}
        }
    }

    /// Takes calls back that a frame has not handed over yet: a later one does.
    fn supersede(&mut self, item: &Item) {
        let Item::Event(record) = item else { return };
        let Event::ClaimReleased { call, .. } = &record.event else { return };
        let hands = |frame: &&mut Frame| {
            frame.hands.as_ref().is_some_and(|hands| hands.calls.contains(call))
        };
        self.waiting.iter_mut().filter(hands).for_each(Frame::show);
    }
}

impl Connection {
    /// Follows a conversation, unless it does already; from now on it has this name. A turn that is under
    /// way, or whose end the client may not have seen, is told from its beginning.
    pub(super) async fn follow(&mut self, name: &str, session: &SessionId) -> Result<(), Error> {
        let now = self.app.now();
        if let Some(known) = self.subscription(session) {
            known.link.rename(name);
            self.app.acknowledged.follow((&self.client, session), name, (now, now));
            return Ok(());
        }
        let sessions = &self.app.ports.sessions;
        let state = sessions.view(session).await?;
        let unseen = self.app.acknowledged.first_unseen(&self.client, &state, now);
        let from = unseen.map_or(state.head, |turn| turn.begins.saturating_sub(1));
        let follow = sessions.follow(session, Cursor::after(from)).await?;
        let at_start = match unseen {
            Some(_) => self.app.ports.inspection.session_at(session, from).await?,
            None => None,
        };
        let at_start = at_start.unwrap_or_else(|| State::clone(&state));
        let up_to = if unseen.is_some() { Time::default() } else { now };
        self.app.acknowledged.follow((&self.client, session), name, (up_to, now));
        let speech = self.app.voice().speech;
        let optional_events = OptionalEvents { speech, ..self.app.settings.optional_events };
        let link = link(&self.client, name, &at_start).with_optional_events(optional_events);
        self.subscriptions.push(Subscription {
            session: session.clone(),
            link,
            state: at_start,
            follow,
            waiting: VecDeque::new(),
            is_searching: false,
            stopping: 0,
            ended: None,
            ping: None,
        });
        Ok(())
    }

    /// Follows a conversation if there is one of that name; a client that names it wants its events.
    pub(super) async fn attend(&mut self, name: &str) -> Result<(), Error> {
        match self.app.known(&self.identity, name).await? {
            Some(session) => self.follow(name, &session).await,
            None => Ok(()),
        }
    }

    /// The conversation about a session, if it is followed.
    pub(super) fn subscription(&mut self, session: &SessionId) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|it| it.session == *session)
    }

    /// Sends what is new of a conversation.
    pub(super) async fn tell(&mut self, socket: &mut WebSocket, news: News) -> Result<(), Gone> {
        let (nth, items) = news;
        // The others come before it the next time.
        let mut told = self.subscriptions.remove(nth);
        let Ok(Some(items)) = items else {
            // One that was not told to the end is asked for again by a client that comes back.
            return if told.link.is_idle() { Ok(()) } else { Err(Gone) };
        };
        let context = told.link.context().clone();
        items.iter().for_each(|item| self.note_speech(&told.session, item, &context));
        let encoded = self.encode(&mut told, &items).await;
        self.subscriptions.push(told);
        encoded.map_err(|error| {
            tracing::warn!(%error, "a conversation cannot be told");
            Gone
        })?;
        self.flush(socket, self.subscriptions.len() - 1).await
    }

    async fn encode(&self, told: &mut Subscription, items: &[Item]) -> Result<(), Error> {
        for item in items {
            told.supersede(item);
            let wants_prompt = told.link.wants_prompt(item);
            // The history of a turn ends with it: messages that wait for theirs are no part of it. That is so
            // as long as the turn is open.
            let ended =
                if wants_prompt && ends_turn(item) { Some(self.prompt(told).await?) } else { None };
            told.evolve(item);
            let prompt = match ended {
                None if wants_prompt => Some(self.prompt(told).await?),
                ended => ended,
            };
            let frames = told.link.encode(item, prompt.as_ref());
            for ended in frames.iter().filter(|frame| frame.ends.is_some()) {
                self.app.turns.end(&told.session, &ended.turn);
            }
            told.waiting.extend(frames);
        }
        Ok(())
    }

    /// What the model was asked, or would have been, at the last item that was read.
    async fn prompt(&self, told: &mut Subscription) -> Result<Prompt, Error> {
        let ports = &self.app.ports;
        let known = |model: ModelRef| Some((model.clone(), ports.models.profile(&model)?));
        let models = told.state.models_for(&Command::Wake);
        told.state.set_profiles(models.into_iter().filter_map(known).collect());
        told.state.copy_dynamic_tools(&*ports.sessions.view(&told.session).await?);
        Ok(prompt::assemble(&told.state))
    }

    /// Sends what waits in all conversations, as far as it may be sent.
    pub(super) async fn flush_all(&mut self, socket: &mut WebSocket) -> Result<(), Gone> {
        for nth in 0..self.subscriptions.len() {
            self.flush(socket, nth).await?;
        }
        Ok(())
    }

    /// Sends what waits in a conversation, as far as it may be sent. A client that is sent the end of a
    /// turn is pinged: what was written to a connection may never have left this machine, and the answer
    /// comes after everything that was sent before.
    async fn flush(&mut self, socket: &mut WebSocket, nth: usize) -> Result<(), Gone> {
        let mut ended = false;
        while let Some(frame) = self.sendable(nth).await? {
            send(socket, Message::Text(frame.text.into())).await?;
            if let Some(end) = frame.ends {
                (self.subscriptions[nth].ended, ended) = (Some(end), true);
            }
        }
        if ended {
            self.pings += 1;
            self.subscriptions[nth].ping = Some(self.pings);
            send(socket, Message::Ping(self.pings.to_be_bytes().to_vec().into())).await?;
        }
        Ok(())
    }

    /// Takes the first frame that waits in a conversation, as this client is sent it; nothing while it is
    /// to wait.
    async fn sendable(&mut self, nth: usize) -> Result<Option<Frame>, Gone> {
        let told = &mut self.subscriptions[nth];
        if told.stopping > 0 || told.is_searching {
            return Ok(None);
        }
        let caught_up = told.has_caught_up();
        let Some(mut frame) = told.waiting.pop_front() else { return Ok(None) };
        if frame.ends.is_some() && self.speech.holds(&told.session, &frame.turn) {
            told.waiting.push_front(frame);
            return Ok(None);
        }
        let Some(hands) = &frame.hands else { return Ok(Some(frame)) };
        let turn = (told.session.clone(), frame.turn.clone());
        match self.runs(&turn, &hands.calls, caught_up).await {
            Ok(Some(runs)) => {
                if !runs {
                    frame.show();
                } else if let Some(search) = self.places_in(&frame) {
                    self.subscriptions[nth].is_searching = true;
                    self.find_places(&turn.0, frame, search);
                    return Ok(None);
                }
                Ok(Some(frame))
            }
            Ok(None) => {
                self.subscriptions[nth].waiting.push_front(frame);
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%error, "calls were not claimed");
                Err(Gone)
            }
        }
    }

    /// Sends a frame whose places were looked for, and what waits behind it. Calls whose places were not
    /// found are over.
    pub(super) async fn hand_over(
        &mut self,
        socket: &mut WebSocket,
        located: Located,
    ) -> Result<(), Gone> {
        let Located { session, mut frame, failed } = located;
        for (call, outcome) in failed {
            if let Err(trouble) = self.hand_back(&session, call, outcome).await {
                tracing::warn!(%session, "a call was not ended: {}", trouble.message());
                return Err(Gone);
            }
        }
        let Some(nth) = self.subscriptions.iter().position(|it| it.session == session) else {
            return Ok(());
        };
        let told = &mut self.subscriptions[nth];
        told.is_searching = false;
        if told.stopping > 0 {
            told.waiting.push_front(frame);
            return Ok(());
        }
        // A call may have timed out, or its turn may have ended, while its place was looked for.
        if !self.is_open(&session, &frame).await {
            frame.show();
        }
        send(socket, Message::Text(frame.text.into())).await?;
        self.flush(socket, nth).await
    }

    /// True if a client still has to run a call that a frame hands over.
    async fn is_open(&self, session: &SessionId, frame: &Frame) -> bool {
        let Some(hands) = &frame.hands else { return true };
        let Ok(state) = self.app.ports.sessions.view(session).await else { return false };
        let open = |id: &CallId| state.open.as_ref().and_then(|open| open.call(id));
        hands.calls.iter().filter_map(open).any(Call::with_client)
    }

    /// Whether this client runs calls of a turn; nothing while that is open, because the connection that
    /// asked for the turn is to claim them, or they may have been handed over anew. The claim decides.
    async fn runs(
        &mut self,
        (session, turn): &(SessionId, String),
        calls: &[CallId],
        caught_up: bool,
    ) -> Result<Option<bool>, Error> {
        let state = self.app.ports.sessions.view(session).await?;
        let open = calls.iter().filter_map(|id| state.open.as_ref()?.call(id));
        let open: Vec<&Call> = open.filter(|call| call.with_client()).collect();
        let Some(first) = open.first() else { return Ok(Some(false)) };
        if !caught_up {
            return Ok(None);
        }
        let asker = self.app.turns.asking_connection(session, turn);
        let is_anothers = asker.is_some_and(|asker| asker != self.number);
        let this = self.held.client();
        match &first.claim {
            None if is_anothers => return Ok(None),
            Some(claim) if claim.by.name != this.name => return Ok(Some(false)),
            // Clients without a name of their own are not told apart by it.
            Some(claim) if is_anothers && self.client.agent.is_none() && claim.by != *this => {
                return Ok(Some(false));
            }
            None | Some(_) => {}
        }
        let open = open.into_iter().map(|call| call.id().clone()).collect();
        self.held.take_over(session, open).await.map(Some)
    }

    /// The client has answered a ping: it has seen what was sent before.
    pub(super) fn answered(&mut self, ping: &[u8]) {
        let Ok(ping) = <[u8; 8]>::try_from(ping).map(u64::from_be_bytes) else { return };
        let told = self.subscriptions.iter_mut().find(|it| it.ping == Some(ping));
        if let Some((told, end)) = told.and_then(|told| Some((&told.session, told.ended?))) {
            self.app.acknowledged.note(&self.client, told, end);
        }
    }

    /// The client takes its leave: it wants to see no more of what it was sent.
    pub(super) fn parted(&self) {
        for told in &self.subscriptions {
            if let Some(end) = told.ended {
                self.app.acknowledged.note(&self.client, &told.session, end);
            }
        }
    }
}

/// The encoder of a conversation from where the session is in that state on.
fn link(client: &Client, name: &str, state: &State) -> Link {
    let context = Context {
        session_id: Some(state.id.to_string()),
        user_id: Some(client.user.clone()),
        conversation_ref: Some(name.into()),
        turn_ref: None,
    };
    let revision = state.turns.iter().rev().find_map(|turn| turn.options.front_end_data(REVISION));
    let revision = revision.and_then(|revision| revision.as_str()).map(ToOwned::to_owned);
    Link::new(context, &state.toolset, state.usage).with_revision(revision)
}

fn ends_turn(item: &Item) -> bool {
    matches!(item, Item::Event(record) if matches!(record.event, Event::TurnCompleted { .. }))
}
