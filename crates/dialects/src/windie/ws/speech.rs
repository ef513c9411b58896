//! Speaks answers while they are streamed, if that is enabled.
//!
//! Sentences are spoken in order. The end of a turn is held back until the audio of its answer was sent, so
//! that clients know when it is complete. A stop ends the speech at once.

use std::collections::{HashSet, VecDeque};
use std::future::pending;
use std::sync::Arc;

use quintet_kernel::event::Event;
use quintet_kernel::message::Role;
use quintet_kernel::model::Channel;
use quintet_kernel::port::{Audio, SenseError, SpeechSynthesizer};
use quintet_kernel::speech::Sentences;
use quintet_kernel::{Item, SessionId, TurnId};
use tokio::task::JoinSet;

use super::{Connection, End};
use crate::windie::wire::audio::chunks;
use crate::windie::wire::query::SPEECH;
use crate::windie::wire::{Answer, Context};

/// Characters of an answer that are spoken: about five minutes.
const ANSWER_LIMIT: usize = 5_000;

/// The answers and greetings that are spoken on a connection.
#[derive(Default)]
pub(super) struct Speech {
    answers: Vec<SpokenAnswer>,
    queue: VecDeque<Sentence>,
    /// The sentence that is being synthesized.
    current: Option<Sentence>,
    /// The task that does so.
    synthesis: JoinSet<Result<Audio, SenseError>>,
}

/// An answer whose text is still arriving.
struct SpokenAnswer {
    session: SessionId,
    turn: TurnId,
    /// The client's id of the turn.
    name: String,
    sentences: Sentences,
    /// Number of characters that were queued.
    spoken: usize,
}

/// A sentence to be spoken.
struct Sentence {
    text: String,
    /// The session; `None` for a greeting.
    session: Option<SessionId>,
    /// The client's id of the turn, or of the message that the greeting answers.
    id: String,
    context: Context,
}

/// A sentence and its audio.
pub(super) struct Spoken {
    sentence: Sentence,
    audio: Result<Audio, SenseError>,
}

impl Speech {
    /// Speaks a greeting in answer to a message.
    pub(super) fn greet(&mut self, id: &str, text: &str) {
        let (id, text) = (id.to_owned(), text.to_owned());
        self.queue.push_back(Sentence { text, session: None, id, context: Context::default() });
    }

    /// True while the end of a turn, by the client's id, has to wait for its audio.
    pub(super) fn holds(&self, session: &SessionId, name: &str) -> bool {
        let is_of =
            |sentence: &Sentence| sentence.id == name && sentence.session.as_ref() == Some(session);
        self.sentences().any(is_of)
    }

    /// Ends the speech of a turn, by the client's id, or of all turns of the session.
    pub(super) fn stop(&mut self, session: &SessionId, name: Option<&str>) {
        let is_meant = |id: &str| name.is_none_or(|name| name == id);
        let is_of = |it: &Sentence| it.session.as_ref() == Some(session) && is_meant(&it.id);
        self.answers.retain(|answer| answer.session != *session || !is_meant(&answer.name));
        self.queue.retain(|sentence| !is_of(sentence));
        if self.current.take_if(|sentence| is_of(sentence)).is_some() {
            self.synthesis = JoinSet::new();
        }
    }

    /// The sessions with answers that are still to be spoken.
    pub(super) fn sessions(&self) -> HashSet<SessionId> {
        let open = self.answers.iter().map(|answer| answer.session.clone());
        open.chain(self.sentences().filter_map(|sentence| sentence.session.clone())).collect()
    }

    fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        self.queue.iter().chain(&self.current)
    }

    /// The next sentence with its audio. Dropping the future loses nothing.
    pub(super) async fn next(&mut self, speaker: &Arc<dyn SpeechSynthesizer>) -> Spoken {
        if self.current.is_none() {
            let Some(sentence) = self.queue.pop_front() else { return pending().await };
            let (speaker, text) = (Arc::clone(speaker), sentence.text.clone());
            self.synthesis.spawn(async move { speaker.speak(text).await });
            self.current = Some(sentence);
        }
        let audio = match self.synthesis.join_next().await {
            Some(Ok(audio)) => audio,
            Some(Err(error)) => Err(SenseError::Failed(error.to_string())),
            None => Err(SenseError::Failed("nothing was synthesized".into())),
        };
        match self.current.take() {
            Some(sentence) => Spoken { sentence, audio },
            None => pending().await,
        }
    }

    /// Queues the text of an item for speech.
    fn take(&mut self, session: &SessionId, item: &Item, context: &Context) {
        match item {
            Item::Text { turn, channel: Channel::Text, text, .. } => {
                self.enqueue(session, turn, context, |sentences| sentences.push(text));
            }
            Item::Text { channel: Channel::Thought, .. } | Item::Progress { .. } => {}
            Item::Event(record) => self.event(session, &record.event, context),
        }
    }

    fn event(&mut self, session: &SessionId, event: &Event, context: &Context) {
        if let Event::ModelCompleted { turn, .. } = event {
            let rest = |sentences: &mut Sentences| sentences.finish().into_iter().collect();
            self.enqueue(session, turn, context, rest);
        } else if let Event::TurnCompleted { turn, .. } = event {
            self.answers.retain(|it| it.session != *session || it.turn != *turn);
        } else if let Event::TurnCancelled { turn, .. } | Event::TurnFailed { turn, .. } = event {
            let of = |it: &&SpokenAnswer| it.session == *session && it.turn == *turn;
            let name = self.answers.iter().find(of).map(|answer| answer.name.clone());
            name.into_iter().for_each(|name| self.stop(session, Some(&name)));
        }
    }

    fn enqueue(
        &mut self,
        session: &SessionId,
        turn: &TurnId,
        context: &Context,
        cut: impl FnOnce(&mut Sentences) -> Vec<String>,
    ) {
        let of = |it: &&mut SpokenAnswer| it.session == *session && it.turn == *turn;
        let Some(answer) = self.answers.iter_mut().find(of) else { return };
        for text in cut(&mut answer.sentences) {
            if answer.spoken >= ANSWER_LIMIT {
                return;
            }
            answer.spoken += text.chars().count();
            let context = Context { turn_ref: Some(answer.name.clone()), ..context.clone() };
            let (session, id) = (Some(session.clone()), answer.name.clone());
            self.queue.push_back(Sentence { text, session, id, context });
        }
    }
}

impl Connection {
    /// Queues the text of an item for speech, if it answers a query of this connection and the user has
    /// enabled speech.
    pub(super) fn note_speech(&mut self, session: &SessionId, item: &Item, context: &Context) {
        if let Item::Event(record) = item
            && let Event::MessageAdded { turn, role: Role::User, options, .. } = &record.event
            && options.front_end_data(SPEECH).is_some()
        {
            let name = options.key.as_deref().unwrap_or(turn.as_str());
            let is_own = self.app.turns.starting_connection(session, name) == Some(self.number);
            if is_own && self.app.ports.speaker.ready().is_ok() {
                self.speech.answers.push(SpokenAnswer {
                    session: session.clone(),
                    turn: turn.clone(),
                    name: name.into(),
                    sentences: Sentences::default(),
                    spoken: 0,
                });
            }
            return;
        }
        self.speech.take(session, item, context);
    }

    /// Sends the audio of a sentence, and the frames that waited for it.
    pub(super) async fn speak(&mut self, spoken: Spoken) -> Result<(), End> {
        let Spoken { sentence, audio } = spoken;
        match audio {
            Ok(audio) => {
                for payload in chunks(&audio) {
                    let answer = Answer::to(&sentence.id, "audio-chunk", payload);
                    self.answer(&answer.about(sentence.context.clone()));
                }
            }
            Err(error) => tracing::warn!(%error, "a sentence could not be spoken"),
        }
        self.flush_all().await
    }
}
