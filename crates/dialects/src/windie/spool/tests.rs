//! What was told, kept and found again.

use super::*;

fn frame(text: &str, calls: &[&str]) -> Frame {
    let calls: Vec<CallId> = calls.iter().filter_map(|call| CallId::parse(call)).collect();
    let hands = (!calls.is_empty()).then(|| Box::new(Hands { calls, shown: "shown".into() }));
    Frame { turn: "t".into(), last: false, text: text.into(), stopped: None, hands }
}

#[test]
fn what_was_told_is_there_again_without_what_was_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::parse("s1").unwrap();
    let mut spool = Spool::of(folder.path(), &session);
    assert!(spool.kept().is_none());
    let agent = Some("a".to_owned());
    spool.begin();
    spool.listens(&None);
    spool.listens(&agent);
    spool.revises((&"q".to_owned(), &"r".to_owned()));
    let frames = [frame(r#"{"sequence":1}"#, &[]), frame(r#"{"sequence":2}"#, &["c1"])];
    spool.tell(&frames, Cursor { seq: 7, offset: 3 });
    let path = folder.path().join("s1");
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(r#"{"told":{"up_to":"9""#);
    fs::write(&path, text).unwrap();
    let kept = Spool::of(folder.path(), &session).kept().unwrap();
    assert_eq!((kept.up_to, &kept.frames[..]), (Cursor { seq: 7, offset: 3 }, &frames[..]));
    assert_eq!(kept.agents, [None, agent]);
    assert_eq!(kept.revisions["q"], "r");
    assert_eq!(kept.counts(), HashMap::from([("t".to_owned(), 2)]));
}

#[test]
fn what_nobody_tells_any_more_is_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["s1", "s2"].map(|name| SessionId::parse(name).unwrap());
    for session in [&one, &two] {
        Spool::of(folder.path(), session).begin();
    }
    sweep(folder.path(), std::slice::from_ref(&two));
    assert!(!folder.path().join("s1").exists() && folder.path().join("s2").exists());
    let mut spool = Spool::of(folder.path(), &two);
    spool.begin();
    spool.end();
    assert!(!folder.path().join("s2").exists());
}
