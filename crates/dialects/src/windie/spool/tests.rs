//! What was told, kept and found again.

use super::*;

fn frame(text: &str, calls: &[&str]) -> Frame {
    let calls: Vec<CallId> = calls.iter().filter_map(|call| CallId::parse(call)).collect();
    let hands = (!calls.is_empty()).then(|| Box::new(Hands { calls, shown: "shown".into() }));
    Frame { turn: "t".into(), text: text.into(), stopped: None, hands }
}

fn of(folder: &Path, session: &str) -> Spool {
    Spool::of(folder, "u", &SessionId::parse(session).unwrap())
}

/// A telling of which two frames are kept.
fn told(folder: &Path) -> (Spool, [Frame; 2]) {
    let mut spool = of(folder, "s1");
    spool.begin();
    let frames = [frame(r#"{"sequence":1}"#, &[]), frame(r#"{"sequence":2}"#, &["c1"])];
    spool.tell(&frames, Cursor { seq: 7, offset: 3 });
    (spool, frames)
}

/// What a daemon that ends in the middle of writing leaves.
fn cut_off(spool: &Spool, rest: &[u8]) {
    let mut file = OpenOptions::new().append(true).open(spool.path.as_ref().unwrap()).unwrap();
    file.write_all(rest).unwrap();
}

#[test]
fn what_was_told_is_there_again_without_what_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    assert!(of(folder.path(), "s1").kept().is_none());
    let (mut spool, frames) = told(folder.path());
    let agent = Some("a".to_owned());
    spool.listens(&None);
    spool.listens(&agent);
    spool.heard(&agent, 2);
    cut_off(&spool, br#"{"told":{"up_to":"9""#);
    let kept = of(folder.path(), "s1").kept().unwrap();
    assert_eq!((kept.up_to, &kept.frames[..]), (Cursor { seq: 7, offset: 3 }, &frames[..]));
    assert_eq!(kept.agents, HashMap::from([(None, 0), (agent, 2)]));
    assert_eq!(kept.counts(), HashMap::from([("t".to_owned(), 2)]));
}

#[test]
fn what_was_cut_off_spoils_nothing_that_comes_later() {
    for rest in
        [&br#"{"told":{"up_to":"9""#[..], "{\"agent\":\"\u{e9}".as_bytes().split_last().unwrap().1]
    {
        let folder = tempfile::tempdir().unwrap();
        let (spool, _) = told(folder.path());
        cut_off(&spool, rest);
        let mut spool = of(folder.path(), "s1");
        let kept = spool.kept().unwrap();
        spool.go_on(&kept);
        spool.tell(&[frame("more", &[])], Cursor { seq: 8, offset: 0 });
        let kept = spool.kept().unwrap();
        assert_eq!((kept.up_to.seq, kept.frames.len()), (8, 3));
    }
}

#[test]
fn users_do_not_share_what_was_told_of_a_session() {
    let folder = tempfile::tempdir().unwrap();
    told(folder.path());
    let other = Spool::of(folder.path(), "../u", &SessionId::parse("s1").unwrap());
    assert!(other.kept().is_none());
    assert_eq!(other.path.unwrap().parent(), Some(folder.path()));
}

#[test]
fn a_call_that_is_over_is_not_handed_over_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, _) = told(folder.path());
    let mut kept = spool.kept().unwrap();
    kept.settle(|_| true);
    assert!(kept.frames[1].hands.is_some());
    kept.settle(|_| false);
    assert_eq!((kept.frames[1].text.as_str(), &kept.frames[1].hands), ("shown", &None));
}

#[test]
fn of_what_is_too_long_nothing_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, _) = told(folder.path());
    spool.bytes = MOST_BYTES;
    spool.tell(&[frame("more", &[])], Cursor::START);
    assert!(spool.kept().is_none() && !spool.path.as_ref().unwrap().exists());
    // The next turn is kept again.
    spool.begin();
    spool.tell(&[frame("more", &[])], Cursor::START);
    assert_eq!(spool.kept().unwrap().frames.len(), 1);
}

#[test]
fn what_nobody_tells_any_more_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let two = SessionId::parse("s2").unwrap();
    let mut spools = ["s1", "s2"].map(|name| of(folder.path(), name));
    spools.iter_mut().for_each(Spool::begin);
    sweep(folder.path(), std::slice::from_ref(&two));
    let there = |spool: &Spool| spool.path.as_ref().unwrap().exists();
    assert_eq!([&spools[0], &spools[1]].map(there), [false, true]);
    spools[1].end();
    assert!(!there(&spools[1]));
}
