//! The feed misses no change and repeats none.

use super::*;

fn session(name: &str) -> SessionId {
    SessionId::parse(name).unwrap()
}

#[tokio::test]
async fn a_session_is_listed_once_with_its_last_change() {
    let feed = ChangeFeed::default();
    feed.published(&session("s0"), 1);
    let subscription = feed.subscribe();
    for head in 1..=1000 {
        feed.published(&session("s1"), head);
    }
    feed.published(&session("s2"), 1);
    feed.erased(&session("s2"));
    subscription.changed().await;
    let changes = subscription.take();
    let expected = [(session("s1"), Change::Head(1000)), (session("s2"), Change::Erased)];
    assert_eq!(changes, expected.into());
    assert!(subscription.take().is_empty());
}

#[tokio::test]
async fn changes_after_a_take_are_delivered_later() {
    let feed = ChangeFeed::default();
    let (one, other) = (feed.subscribe(), feed.subscribe());
    feed.published(&session("s1"), 1);
    one.changed().await;
    assert_eq!(one.take().len(), 1);
    feed.published(&session("s1"), 2);
    one.changed().await;
    assert_eq!(one.take(), [(session("s1"), Change::Head(2))].into());
    assert_eq!(other.take(), [(session("s1"), Change::Head(2))].into());
}

#[test]
fn dropped_subscribers_are_removed() {
    let feed = ChangeFeed::default();
    drop(feed.subscribe());
    let _subscribed = feed.subscribe();
    assert_eq!(lock(&feed.subscribers).len(), 1);
}
