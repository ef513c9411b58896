//! Stops that cannot be carried out.

use quintet_kernel::Cursor;
use quintet_kernel::Time;
use quintet_kernel::card::Card;
use quintet_kernel::event::Origin;
use quintet_kernel::id::Fresh as _;
use quintet_kernel::port::{BoxFuture, Follow, Receipt, StorageError};

use super::super::super::line::Frame;
use super::super::super::room::{Room, Who};
use super::super::super::spool::Spool;
use super::*;

/// Sessions that cannot be reached.
struct Unavailable;

fn unavailable<T: Send + 'static>() -> BoxFuture<'static, Result<T, Error>> {
    Box::pin(async { Err(StorageError::Unavailable("the disk is full".into()).into()) })
}

impl Sessions for Unavailable {
    fn create(&self, _: Origin) -> BoxFuture<'_, Result<Receipt, Error>> {
        unavailable()
    }

    fn submit(&self, _: &SessionId, _: Command) -> BoxFuture<'_, Result<Receipt, Error>> {
        unavailable()
    }

    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unavailable()
    }

    fn follow(&self, _: &SessionId, _: Cursor) -> BoxFuture<'_, Result<Box<dyn Follow>, Error>> {
        unavailable()
    }

    fn card(&self, _: &SessionId) -> BoxFuture<'_, Result<Card, Error>> {
        unavailable()
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<Card>, Error>> {
        unavailable()
    }
}

#[tokio::test]
async fn a_stop_that_failed_silences_nobody() {
    let (session, turn) = (SessionId::named("s".into()), TurnId::named("t".into()));
    let about = (session.clone(), "c".to_owned());
    let room = Arc::new(Room::new(about, Time::default(), Spool::default()));
    let mut seat = room.sit(Who::default());
    let silent = vec![room.stopping(&None, "q")];
    assert!(!withdraw(&Unavailable, &session, turn, silent).await);
    let frame = Frame { turn: "q".into(), text: "more".into(), stopped: None, hands: None };
    room.tell(vec![frame], Cursor::START, Time::default());
    assert_eq!(seat.next().await.unwrap().len(), 1);
}
