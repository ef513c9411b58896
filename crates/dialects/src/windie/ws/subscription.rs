//! Subscriptions of a connection to conversations: a cursor over each session and its own encoder.
//!
//! A turn is followed from its first event on, and its frames are numbered by the encoder alone. They therefore
//! have the same numbers on every connection and after a restart, and sent frames need not be stored.

use std::collections::VecDeque;
use std::future::pending;

use axum::extract::ws::Message;
use futures_util::future::select_all;
use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, Record};
use quintet_kernel::model::{ModelRef, Prompt};
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::session::Call;
use quintet_kernel::{Cursor, Item, SessionId, State, Time, prompt};

use super::acknowledged::Client;
use super::coordinates::Located;
use super::{Connection, End};
use crate::windie::encode::turn_frames::Frame;
use crate::windie::encode::{Link, OptionalEvents};
use crate::windie::wire::Context;
use crate::windie::wire::query::REVISION;

/// A conversation that a connection follows.
pub(super) struct Subscription {
    pub(super) session: SessionId,
    pub(super) link: Link,
    /// The session at the last item that was read: a prompt or a history is shown as it was at its own
    /// item, whatever happened since.
    state: State,
    follow: Box<dyn Follower>,
    /// Frames that are not sent yet, because it is not decided who runs the calls of the first.
    waiting: VecDeque<Frame>,
    /// True while places for the calls of a frame are searched: later frames wait.
    is_searching: bool,
    /// Number of stops of its turns that are being carried out: until then nothing is sent.
    pub(super) stopping: usize,
    /// The end of the last turn whose end was sent.
    ended: Option<Time>,
    /// The ping that was sent after that end.
    ping: Option<u64>,
}

/// New items of one of several sessions, by its index.
type News = (usize, Result<Option<Vec<Item>>, Error>);

/// Waits for news of one of the conversations, except those that are being stopped.
pub(super) async fn next(subscriptions: &mut [Subscription]) -> News {
    let open = subscriptions.iter_mut().enumerate().filter(|(_, it)| it.stopping == 0);
    let news = open.map(|(nth, it)| Box::pin(async move { (nth, it.follow.next().await) }));
    let news: Vec<_> = news.collect();
    if news.is_empty() { pending().await } else { select_all(news).await.0 }
}

impl Subscription {
    /// Notes that the client stopped a turn: only the end is still sent.
    pub(super) fn stop(&mut self, turn: &str) {
        self.waiting.iter_mut().filter(|frame| frame.turn == turn).for_each(Frame::show);
        self.link.stop(turn);
    }

    /// True once everything was read that the session had when following began.
    fn has_caught_up(&self) -> bool {
        self.follow.position().seq >= self.follow.head()
    }

    /// Applies an item to the state. Text arrives in other pieces than those of the journal, which gives
    /// the same text.
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

    /// Takes a released call out of waiting frames: a later frame hands it over.
    fn supersede(&mut self, item: &Item) {
        let Item::Event(record) = item else { return };
        let Event::ClaimReleased { call, .. } = &record.event else { return };
        self.waiting.iter_mut().filter(|frame| frame.hands(call)).for_each(Frame::show);
    }
}

impl Connection {
    /// Follows a conversation under this name, unless it is followed already. An open turn, or one whose end
    /// the client may not have seen, is sent from its beginning.
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
        self.subscriptions.push(Subscription {
            session: session.clone(),
            link: link(&self.client, name, &at_start).with_optional_events(optional_events),
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

    /// Follows a conversation that the client names, if it exists.
    pub(super) async fn follow_known(&mut self, name: &str) -> Result<Option<SessionId>, Error> {
        let session = self.app.known(&self.identity, name).await?;
        if let Some(session) = &session {
            self.follow(name, session).await?;
        }
        Ok(session)
    }

    /// The subscription to a session, if it is followed.
    pub(super) fn subscription(&mut self, session: &SessionId) -> Option<&mut Subscription> {
        self.subscriptions.iter_mut().find(|it| it.session == *session)
    }

    /// Sends new items of a conversation.
    pub(super) async fn publish(&mut self, (nth, items): News) -> Result<(), End> {
        // It is added at the end again, so that the others come first the next time.
        let mut subscription = self.subscriptions.remove(nth);
        let Ok(Some(items)) = items else {
            // A client that comes back gets the rest of an open turn.
            return if subscription.link.is_idle() { Ok(()) } else { Err(End::Gone) };
        };
        let context = subscription.link.context().clone();
        items.iter().for_each(|item| self.note_speech(&subscription.session, item, &context));
        let encoded = self.encode(&mut subscription, &items).await;
        self.subscriptions.push(subscription);
        encoded.map_err(|error| {
            tracing::warn!(%error, "events of a conversation cannot be encoded");
            End::Gone
        })?;
        self.flush(self.subscriptions.len() - 1).await
    }

    async fn encode(&self, subscription: &mut Subscription, items: &[Item]) -> Result<(), Error> {
        for item in items {
            subscription.supersede(item);
            let wants_prompt = subscription.link.wants_prompt(item);
            // The history of a turn is made while the turn is open, because it must not contain queued
            // messages.
            let prompt = if wants_prompt && ends_turn(item) {
                let prompt = self.prompt(subscription).await?;
                subscription.evolve(item);
                Some(prompt)
            } else {
                subscription.evolve(item);
                if wants_prompt { Some(self.prompt(subscription).await?) } else { None }
            };
            let frames = subscription.link.encode(item, prompt.as_ref());
            for frame in frames.iter().filter(|frame| frame.ends.is_some()) {
                self.app.turns.end(&subscription.session, &frame.turn);
            }
            subscription.waiting.extend(frames);
        }
        Ok(())
    }

    /// The model's prompt at the last item that was read.
    async fn prompt(&self, subscription: &mut Subscription) -> Result<Prompt, Error> {
        let (ports, state) = (&self.app.ports, &mut subscription.state);
        let known = |model: ModelRef| Some((model.clone(), ports.models.profile(&model)?));
        let models = state.models_for(&Command::Wake);
        state.set_profiles(models.into_iter().filter_map(known).collect());
        state.copy_dynamic_tools(&*ports.sessions.view(&subscription.session).await?);
        Ok(prompt::assemble(state))
    }

    /// Sends the waiting frames of all conversations, as far as they may be sent.
    pub(super) async fn flush_all(&mut self) -> Result<(), End> {
        for nth in 0..self.subscriptions.len() {
            self.flush(nth).await?;
        }
        Ok(())
    }

    /// Sends the waiting frames of a conversation, as far as they may be sent. The end of a turn is followed by
    /// a ping: the client's answer proves that it has received everything before it.
    async fn flush(&mut self, nth: usize) -> Result<(), End> {
        let mut ended = None;
        while let Some(frame) = self.sendable(nth).await? {
            ended = frame.ends.or(ended);
            self.outbox.push(Message::Text(frame.text.into()));
        }
        if ended.is_some() {
            self.pings += 1;
            let subscription = &mut self.subscriptions[nth];
            (subscription.ended, subscription.ping) = (ended, Some(self.pings));
            self.outbox.push(Message::Ping(self.pings.to_be_bytes().to_vec().into()));
        }
        Ok(())
    }

    /// Takes the first waiting frame of a conversation, in the form for this client; `None` while the frame
    /// has to wait.
    async fn sendable(&mut self, nth: usize) -> Result<Option<Frame>, End> {
        let subscription = &mut self.subscriptions[nth];
        if subscription.stopping > 0 || subscription.is_searching {
            return Ok(None);
        }
        let caught_up = subscription.has_caught_up();
        let session = subscription.session.clone();
        let Some(mut frame) = subscription.waiting.pop_front() else { return Ok(None) };
        let runs = if frame.ends.is_some() && self.speech.holds(&session, &frame.turn) {
            Ok(None)
        } else if frame.handover.is_some() {
            self.runs(&session, &frame, caught_up).await
        } else {
            return Ok(Some(frame));
        };
        match runs {
            Ok(Some(true)) => {
                if let Some(grounded) = self.grounded_calls(&frame) {
                    self.subscriptions[nth].is_searching = true;
                    self.find_places(session, frame, grounded);
                    return Ok(None);
                }
                Ok(Some(frame))
            }
            Ok(Some(false)) => {
                frame.show();
                Ok(Some(frame))
            }
            Ok(None) => {
                self.subscriptions[nth].waiting.push_front(frame);
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(%error, "calls were not claimed");
                Err(End::Gone)
            }
        }
    }

    /// Sends a frame after the search for its places, and the frames behind it. Calls whose places were not
    /// found have failed.
    pub(super) async fn hand_over(&mut self, located: Located) -> Result<(), End> {
        let Located { session, mut frame, failed } = located;
        for (call, outcome) in failed {
            if let Err(error) = self.return_result(&session, call, outcome).await {
                tracing::warn!(%session, "a call was not ended: {}", error.message());
                return Err(End::Gone);
            }
        }
        let Some(nth) = self.subscriptions.iter().position(|it| it.session == session) else {
            return Ok(());
        };
        let subscription = &mut self.subscriptions[nth];
        subscription.is_searching = false;
        if subscription.stopping > 0 {
            subscription.waiting.push_front(frame);
            return Ok(());
        }
        // A call may have timed out, or its turn may have ended, during the search.
        let state = self.app.ports.sessions.view(&session).await;
        if frame.handover.is_some() && !state.is_ok_and(|state| has_open_call(&state, &frame)) {
            frame.show();
        }
        self.outbox.push(Message::Text(frame.text.into()));
        self.flush(nth).await
    }

    /// True if this client runs the calls of a frame; the claim decides. `None` while that is open, because
    /// the connection that started the turn has precedence, or because a later frame may hand them over.
    async fn runs(
        &mut self,
        session: &SessionId,
        frame: &Frame,
        caught_up: bool,
    ) -> Result<Option<bool>, Error> {
        let state = self.app.ports.sessions.view(session).await?;
        let open: Vec<&Call> = open_calls(&state, frame).collect();
        let Some(first) = open.first() else { return Ok(Some(false)) };
        if !caught_up {
            return Ok(None);
        }
        let starter = self.app.turns.starting_connection(session, &frame.turn);
        let is_anothers = starter.is_some_and(|starter| starter != self.number);
        let this = self.held.client();
        match &first.claim {
            None if is_anothers => return Ok(None),
            Some(claim) if claim.by.name != this.name => return Ok(Some(false)),
            // All clients without an agent id have the same name.
            Some(claim) if is_anothers && self.client.agent.is_none() && claim.by != *this => {
                return Ok(Some(false));
            }
            None | Some(_) => {}
        }
        let open = open.into_iter().map(|call| call.id().clone()).collect();
        self.held.take_over(session, open).await.map(Some)
    }

    /// Notes that the client answered a ping, and so has received everything before it.
    pub(super) fn acknowledge(&self, ping: &[u8]) {
        let Ok(ping) = <[u8; 8]>::try_from(ping).map(u64::from_be_bytes) else { return };
        self.note_ends(|subscription| subscription.ping == Some(ping));
    }

    /// Notes that the client closed the connection, and so needs no end of a turn again.
    pub(super) fn acknowledge_all(&self) {
        self.note_ends(|_| true);
    }

    fn note_ends(&self, is_seen: impl Fn(&Subscription) -> bool) {
        for subscription in self.subscriptions.iter().filter(|it| is_seen(it)) {
            if let Some(end) = subscription.ended {
                self.app.acknowledged.note(&self.client, &subscription.session, end);
            }
        }
    }
}

/// The calls of a frame that a client still has to run.
fn open_calls<'a>(state: &'a State, frame: &'a Frame) -> impl Iterator<Item = &'a Call> {
    let calls = frame.handover.iter().flat_map(|handover| &handover.calls);
    let open = calls.filter_map(|pending| state.open.as_ref()?.call(&pending.call));
    open.filter(|call| call.with_client())
}

fn has_open_call(state: &State, frame: &Frame) -> bool {
    open_calls(state, frame).next().is_some()
}

/// The encoder of a conversation for what follows a state of its session.
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
