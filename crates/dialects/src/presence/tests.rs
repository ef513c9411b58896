//! Which followers count, and for how long.

use super::*;

fn check(presence: &Presence, session: &SessionId, expected: &[(&'static str, u64)]) {
    assert_eq!(presence.of(session).into_iter().collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_follower_counts_after_the_minimum_age_until_it_is_dropped() {
    let (presence, session) = (Presence::default(), SessionId::parse("s1").unwrap());
    let first = presence.add(&session, "one");
    check(&presence, &session, &[]);
    tokio::time::advance(MINIMUM_AGE).await;
    check(&presence, &session, &[("one", 1)]);
    let second = presence.add(&session, "one");
    let other = presence.add(&session, "other");
    tokio::time::advance(MINIMUM_AGE).await;
    check(&presence, &session, &[("one", 2), ("other", 1)]);
    check(&presence, &SessionId::parse("s2").unwrap(), &[]);
    drop((first, other));
    check(&presence, &session, &[("one", 1)]);
    drop(second);
    assert!(presence.shared.lock().is_empty());
}
