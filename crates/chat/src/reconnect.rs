//! The connection as a conversation sees it: when it breaks it is looked for again.

use std::pin::Pin;
use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use crate::link::{Heard, Link};
use crate::wire::{Request, Size};
use crate::{Error, Settings};

const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How often it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    Tries(u32),
    Endless,
}

type Search = Pin<Box<dyn Future<Output = Result<(Link, Value), Error>> + Send>>;

/// A connection that comes back.
pub(crate) struct Line {
    settings: Settings,
    patience: Patience,
    state: State,
}

enum State {
    Up(Box<Link>),
    Down(Search),
}

/// What came over the line.
#[derive(Debug)]
pub(crate) enum Came {
    Heard(Value, Heard),
    Lost,
    /// It is back, and this is who answers.
    Back(Value),
}

impl Line {
    pub(crate) async fn open(
        settings: &Settings,
        size: Size,
        patience: Patience,
    ) -> Result<(Self, Value), Error> {
        let (link, server) = Link::open(settings, size).await?;
        Ok((
            Self { settings: settings.clone(), patience, state: State::Up(Box::new(link)) },
            server,
        ))
    }

    /// Sends a request; while there is no connection it is dropped, and who asked hears of the loss.
    pub(crate) async fn send(&mut self, request: Request) {
        if let State::Up(link) = &mut self.state {
            // A daemon that is gone shows when the next thing is read.
            let _ = link.send(request).await;
        }
    }

    /// What comes next; an error once patience is at its end. Safe to drop and call again.
    pub(crate) async fn next(&mut self, size: Size) -> Result<Came, Error> {
        match &mut self.state {
            State::Up(link) => match link.next().await {
                Some((message, heard)) => Ok(Came::Heard(message, heard)),
                None => {
                    self.renew(size);
                    Ok(Came::Lost)
                }
            },
            State::Down(search) => {
                let (link, server) = search.await?;
                self.state = State::Up(Box::new(link));
                Ok(Came::Back(server))
            }
        }
    }

    /// What is there already.
    pub(crate) fn ready(&mut self) -> Option<Came> {
        match &mut self.state {
            State::Up(link) => link.ready().map(|(message, heard)| Came::Heard(message, heard)),
            State::Down(_) => None,
        }
    }

    /// Hangs up and calls again.
    pub(crate) fn renew(&mut self, size: Size) {
        self.state = State::Down(self.search(size));
    }

    fn search(&self, size: Size) -> Search {
        let (settings, patience) = (self.settings.clone(), self.patience);
        Box::pin(async move {
            let (mut wait, mut tried) = (FIRST_WAIT, 0);
            loop {
                match Link::open(&settings, size).await {
                    Ok(found) => return Ok(found),
                    Err(error) if Patience::Tries(tried) == patience => return Err(error),
                    Err(_) => sleep(wait).await,
                }
                tried += 1;
                wait = (wait * 2).min(LONGEST_WAIT);
            }
        })
    }
}
