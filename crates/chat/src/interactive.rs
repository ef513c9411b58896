//! The interactive screen: passes keys and messages to the model, and its requests to the daemon.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_util::{Stream, StreamExt};
use ratatui::Terminal;
use ratatui::backend::Backend;
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::connection::Incoming;
use crate::model::{InputHistory, Message, Model, update};
use crate::reconnect::{Reconnecting, RetryLimit, Update};
use crate::screen::Screen;
use crate::view::View;
use crate::wire::Size;
use crate::{Error, Settings, history_file};

/// Interval at which the screen is updated while something runs.
const TICK_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum number of messages that are applied before the screen is drawn again.
const MESSAGES_PER_FRAME_LIMIT: usize = 512;

/// Runs the screen until the user quits. Fails if there is no daemon or no usable terminal.
pub async fn interactive(settings: &Settings) -> Result<(), Error> {
    let (cols, rows) = crossterm::terminal::size().map_err(Error::Terminal)?;
    let size = Size { cols, rows };
    // The screen is not changed until there is a connection.
    let (connection, server) = Reconnecting::open(settings, size, RetryLimit::Unlimited).await?;
    let mut screen = Screen::enter().map_err(Error::Terminal)?;
    let mut conversation = Conversation::new(settings, size, connection);
    let terminal_error = |error: io::Error| Error::Terminal(error);
    let mut ends = signal(SignalKind::terminate()).map_err(terminal_error)?;
    let mut hangups = signal(SignalKind::hangup()).map_err(terminal_error)?;
    tokio::select! {
        over = conversation.run(&mut screen.terminal, EventStream::new(), server) => over,
        _ = ends.recv() => Ok(()),
        _ = hangups.recv() => Ok(()),
    }
}

pub(crate) struct Conversation {
    settings: Settings,
    model: Model,
    view: View,
    connection: Reconnecting,
}

impl Conversation {
    pub(crate) fn new(settings: &Settings, size: Size, connection: Reconnecting) -> Self {
        let mut model = Model::new(size, settings.session.clone(), settings.model.clone());
        model.input_history = InputHistory::new(
            settings.history.as_deref().map(history_file::read).unwrap_or_default(),
        );
        Self { settings: settings.clone(), model, view: View::new(settings.colours), connection }
    }

    /// Runs until the user quits or the input ends. Fails if the terminal cannot be drawn.
    pub(crate) async fn run<B>(
        &mut self,
        terminal: &mut Terminal<B>,
        mut keys: impl Stream<Item = io::Result<Event>> + Unpin,
        server: Value,
    ) -> Result<(), Error>
    where
        B: Backend<Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    {
        self.take(Message::Back(server)).await;
        let mut ticks = interval(TICK_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.model.leaving {
            let (view, model) = (&mut self.view, &mut self.model);
            terminal
                .draw(|frame| view.draw(frame, model))
                .map_err(|error| Error::Terminal(io::Error::other(error)))?;
            let (size, busy) = (self.model.size, self.model.is_busy());
            tokio::select! {
                event = keys.next() => match event {
                    Some(Ok(event)) => self.event(event).await,
                    Some(Err(error)) => return Err(Error::Terminal(error)),
                    None => return Ok(()),
                },
                update = self.connection.next(size) => {
                    self.apply_update(update?).await;
                    self.catch_up().await;
                }
                _ = ticks.tick(), if busy => self.take(Message::Tick).await,
            }
        }
        Ok(())
    }

    async fn event(&mut self, event: Event) {
        match event {
            Event::Key(key) => self.take(Message::Key(key)).await,
            Event::Paste(text) => self.take(Message::Paste(text)).await,
            Event::Resize(cols, rows) => self.take(Message::Resize(Size { cols, rows })).await,
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) => {}
        }
    }

    /// Applies the messages that arrived meanwhile, so that a fast model needs fewer redraws.
    async fn catch_up(&mut self) {
        for _ in 0..MESSAGES_PER_FRAME_LIMIT {
            let Some(update) = self.connection.ready() else { return };
            self.apply_update(update).await;
        }
    }

    async fn apply_update(&mut self, update: Update) {
        let message = match update {
            Update::Received(_, Incoming::Notice(notice)) => Message::Notice(notice),
            Update::Received(_, Incoming::Answer(request, answer)) => {
                Message::Answer(request, answer)
            }
            Update::Received(_, Incoming::Unknown) => return,
            Update::Lost => Message::Lost,
            Update::Back(server) => Message::Back(server),
        };
        self.take(message).await;
    }

    async fn take(&mut self, message: Message) {
        let requests = update(&mut self.model, message);
        for request in requests {
            self.connection.send(request).await;
        }
        if std::mem::take(&mut self.model.chat.reconnect) {
            self.connection.renew(self.model.size);
        }
        let fresh = self.model.input_history.take_unsaved();
        if let Some(file) = &self.settings.history
            && history_file::append(file, &fresh).is_err()
        {
            self.model.hint = Some("the history file cannot be written".into());
        }
    }
}

#[cfg(test)]
mod tests;
