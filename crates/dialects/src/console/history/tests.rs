//! What a page has and where a stream goes on from it.

use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{BoxFuture, Error, Follower};
use quintet_kernel::{Cursor, Item, Time};

use super::Page;

/// A session that had one event when the follower was made, and has three when it is read.
struct Growing(Cursor);

impl Follower for Growing {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        let closed = || Event::SessionClosed { reason: None, summary: None };
        let record = |seq| Record { seq, at: Time::default(), event: closed() };
        let items = (1..=3).map(|seq| Item::Event(Arc::new(record(seq)))).collect();
        self.0 = Cursor::after(3);
        Box::pin(async { Ok(Some(items)) })
    }

    fn head(&self) -> Seq {
        1
    }

    fn position(&self) -> Cursor {
        self.0
    }
}

#[tokio::test]
async fn the_last_page_has_all_events_up_to_its_position() {
    let mut follow = Growing(Cursor::START);
    let page = Page::read(&mut follow, 2, None).await.unwrap();
    let events: Vec<_> = page.finish().iter().map(|event| event["seq"].as_u64()).collect();
    assert_eq!(events, [Some(1), Some(2), Some(3)]);
    assert_eq!(follow.position(), Cursor::after(3));
}

#[tokio::test]
async fn an_earlier_page_ends_where_the_next_one_begins() {
    let page = Page::read(&mut Growing(Cursor::START), 2, Some(2)).await.unwrap();
    assert_eq!(page.finish().len(), 1);
}
