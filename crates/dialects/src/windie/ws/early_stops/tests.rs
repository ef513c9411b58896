//! Which queries an early stop applies to.

use super::*;

fn stop(conversation: Option<&str>, turn: Option<&str>) -> Stop {
    let (conversation, turn) = (conversation.map(Into::into), turn.map(Into::into));
    Stop { user: "u".into(), conversation, turn, at: Time::default() }
}

#[test]
fn a_stop_counts_once_for_its_turn_and_not_for_long() {
    let (stops, now) = (EarlyStops::default(), Time::default());
    stops.remember(stop(Some("c"), Some("t")));
    assert!(!stops.take("other", "c", "t", now));
    assert!(!stops.take("u", "d", "t", now));
    assert!(!stops.take("u", "c", "s", now));
    assert!(stops.take("u", "c", "t", now));
    assert!(!stops.take("u", "c", "t", now));
    stops.remember(stop(None, Some("t")));
    assert!(!stops.take("u", "c", "t", now.after(EARLY_STOP_LIFETIME)));
    assert!(stops.take("u", "c", "t", now));
    stops.remember(stop(Some("c"), None));
    assert!(stops.take("u", "c", "t", now));
}
