//! How long a turn counts.

use quintet_kernel::id::GeneratedId as _;

use super::*;

#[test]
fn a_turn_counts_until_it_is_over_also_without_its_connection() {
    let (turns, session) = (Turns::default(), SessionId::named("s".into()));
    let one = turns.connect();
    turns.begin((&session, "q"), "u", one);
    assert_eq!((turns.count("u"), turns.count("v")), ((1, 1), (0, 1)));
    assert_eq!(turns.starting_connection(&session, "q"), Some(one));
    // What somebody is there for is not looked at.
    turns.retain(&session, |_| false);
    assert_eq!(turns.count("u"), (1, 1));
    let gone = turns.disconnected();
    turns.disconnect(one);
    assert!(gone.has_changed().unwrap() && turns.starting_connection(&session, "q").is_none());
    turns.retain(&session, |name| name == "q");
    assert_eq!(turns.sessions(Some("u")), HashSet::from([session.clone()]));
    turns.retain(&session, |_| false);
    assert_eq!(turns.count("u"), (0, 0));
}
