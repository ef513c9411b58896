//! Who hears what, and who runs what.

use quintet_kernel::id::Fresh as _;

use super::*;

fn told(room: &Room, words: &[&str]) {
    let frame = |word: &&str| Frame {
        turn: "t".into(),
        text: (*word).into(),
        stopped: (*word == "end").then(|| "stopped".into()),
        hands: None,
    };
    room.tell(words.iter().map(frame).collect(), Cursor::START, Time::default());
}

fn turn(name: &str) -> TurnId {
    TurnId::named(name.into())
}

async fn heard(seat: &mut Seat) -> Vec<String> {
    let frames = seat.next().await.unwrap();
    let client = seat.room.log().seats[&seat.id].who.client.clone();
    seat.room.heard(&client, seat.position());
    let text = |sent: Sent| match sent {
        Sent::Text(text) => text.to_string(),
        Sent::Offer(offer) => offer.text.to_string(),
    };
    frames.into_iter().map(text).collect()
}

fn sit(room: &Arc<Room>, agent: &Client) -> Seat {
    room.sit(Who { connection: 0, client: agent.clone() })
}

fn who(connection: u64, client: Option<&str>) -> Who {
    Who { connection, client: client.map(Into::into) }
}

fn hand(room: &Room) {
    let calls = vec![CallId::named("c1".into())];
    let hands = Some(Box::new(Hands { calls, shown: "look".into() }));
    let (turn, text) = ("q".into(), "run".into());
    let frame = Frame { turn, text, stopped: None, hands };
    room.tell(vec![frame], Cursor::START, Time::default());
}

#[tokio::test]
async fn only_who_asked_runs_what_that_leads_to() {
    let room = room();
    let (mut asked, mut other) = (room.sit(who(1, None)), room.sit(who(2, None)));
    room.reserve("q", 1);
    room.note(&turn("t1"), Stage::Asked);
    hand(&room);
    assert_eq!(heard(&mut other).await, ["look"]);
    assert_eq!(heard(&mut asked).await, ["run"]);
    drop((asked, other));
}

#[tokio::test]
async fn what_nobody_heard_of_is_handed_to_those_who_are_there() {
    let room = room();
    let (asked, mut other) = (room.sit(who(1, Some("a"))), room.sit(who(2, Some("b"))));
    room.reserve("q", 1);
    room.note(&turn("t1"), Stage::Asked);
    hand(&room);
    assert_eq!(heard(&mut other).await, ["look"]);
    drop(asked);
    room.again.notified().await;
    assert_eq!(room.given_up(), [CallId::named("c1".into())]);
    // What he should have heard hands over nothing any more.
    assert_eq!(heard(&mut room.sit(who(3, Some("a")))).await, ["look"]);
    hand(&room);
    assert_eq!(heard(&mut other).await, ["run"]);
}

#[tokio::test]
async fn what_somebody_claimed_is_offered_to_nobody_else() {
    let room = room();
    let (mut asked, mut other) = (room.sit(who(1, Some("a"))), room.sit(who(2, Some("b"))));
    room.reserve("q", 1);
    room.note(&turn("t1"), Stage::Asked);
    hand(&room);
    assert_eq!(heard(&mut asked).await, ["run"]);
    room.claimed(&[CallId::named("c1".into())]);
    assert_eq!(heard(&mut other).await, ["look"]);
    drop(asked);
    assert!(room.given_up().is_empty());
    // What comes later is run by those who are there.
    let calls = vec![CallId::named("c2".into())];
    let hands = Some(Box::new(Hands { calls, shown: "look".into() }));
    let frame = Frame { turn: "q".into(), text: "run 2".into(), stopped: None, hands };
    room.tell(vec![frame], Cursor::START, Time::default());
    assert_eq!(heard(&mut other).await, ["run 2"]);
}

#[tokio::test]
async fn who_is_too_far_behind_is_told_nothing_with_a_gap() {
    let room = room();
    room.note(&turn("t1"), Stage::Asked);
    let mut slow = sit(&room, &None);
    let word = "x".repeat(MOST_BYTES / 2 + 1);
    told(&room, &["a", &word]);
    assert!(!slow.is_behind());
    told(&room, &[&word]);
    assert!(slow.next().await.is_none() && slow.is_behind());
    // One that comes back is told what is there.
    drop(slow);
    assert_eq!(sit(&room, &None).next().await.unwrap().len(), 1);
}

#[tokio::test]
async fn of_what_is_not_asked_nothing_is_kept() {
    let room = room();
    room.reserve("q", 1);
    assert_eq!(room.busy(), 1);
    room.forget("q");
    assert_eq!(room.busy(), 0);
}

#[tokio::test]
async fn who_cannot_stop_a_turn_hears_it_on() {
    let (room, agent) = (room(), Some("a".to_owned()));
    room.note(&turn("t1"), Stage::Asked);
    let (mut one, mut other) = (sit(&room, &agent), sit(&room, &None));
    let stopping = room.stopping(&agent, "t");
    told(&room, &["a"]);
    assert_eq!(heard(&mut other).await, ["a"]);
    assert!(matches!(room.log().read(one.id), Read::Nothing));
    drop(stopping);
    assert_eq!(heard(&mut one).await, ["a"]);
}

#[tokio::test]
async fn a_client_that_comes_back_is_offered_what_it_claimed() {
    let room = room();
    let old = room.sit(who(1, Some("agent")));
    room.reserve("q", 1);
    room.note(&turn("t1"), Stage::Asked);
    hand(&room);
    // The old connection may hang for a while, and may yet claim the call.
    assert_eq!(heard(&mut room.sit(who(2, Some("agent")))).await, ["look"]);
    room.claimed(&[CallId::named("c1".into())]);
    assert_eq!(heard(&mut room.sit(who(3, Some("agent")))).await, ["run"]);
    assert_eq!(heard(&mut room.sit(who(4, Some("another")))).await, ["look"]);
    assert_eq!(heard(&mut room.sit(who(5, None))).await, ["look"]);
    drop(old);
}

fn room() -> Arc<Room> {
    Arc::new(Room::new(
        (SessionId::named("s".into()), "c".into()),
        Time::default(),
        Spool::default(),
    ))
}

#[tokio::test]
async fn each_reads_at_his_own_pace() {
    let room = room();
    room.note(&turn("t1"), Stage::Asked);
    let (mut fast, mut slow) = (sit(&room, &None), sit(&room, &None));
    told(&room, &["a"]);
    assert_eq!(heard(&mut fast).await, ["a"]);
    told(&room, &["b", "c"]);
    assert_eq!(heard(&mut fast).await, ["b", "c"]);
    assert_eq!(heard(&mut slow).await, ["a", "b", "c"]);
}

#[tokio::test]
async fn who_was_away_hears_the_turn_again_until_somebody_heard_its_end() {
    let room = room();
    room.note(&turn("t1"), Stage::Asked);
    let mut first = sit(&room, &None);
    told(&room, &["a"]);
    assert_eq!(heard(&mut first).await, ["a"]);
    drop(first);
    told(&room, &["b"]);
    room.note(&turn("t1"), Stage::Over);
    let mut second = sit(&room, &None);
    assert_eq!(heard(&mut second).await, ["a", "b"]);
    let third = sit(&room, &None);
    drop(second);
    room.note(&turn("t2"), Stage::Asked);
    told(&room, &["c"]);
    let mut third = third;
    assert_eq!(heard(&mut third).await, ["c"]);
}

#[tokio::test]
async fn a_room_is_kept_while_somebody_may_come_back() {
    let room = room();
    let later = Time::default().after(Duration::from_secs(60));
    assert!(room.idle(later));
    room.note(&turn("t1"), Stage::Asked);
    assert!(!room.idle(later) && room.awaited_by(&None));
    told(&room, &["a"]);
    room.note(&turn("t1"), Stage::Over);
    assert!(!room.idle(later) && room.awaited_by(&None));
    assert!(room.idle(later.after(KEPT)));
    let mut seat = sit(&room, &None);
    heard(&mut seat).await;
    assert!(!room.idle(later));
    drop(seat);
    assert!(room.idle(later) && !room.awaited_by(&None));
}

#[tokio::test]
async fn a_call_that_is_over_is_not_handed_over_again() {
    let room = room();
    room.note(&turn("t1"), Stage::Asked);
    let (one, two) = (CallId::named("c1".into()), CallId::named("c2".into()));
    let calls = vec![one.clone(), two.clone()];
    let hands = Some(Box::new(Hands { calls, shown: "nothing to run".into() }));
    let frame = Frame { turn: "t".into(), text: "run both".into(), hands, stopped: None };
    room.tell(vec![frame], Cursor::START, Time::default());
    room.settle(&one);
    assert_eq!(heard(&mut sit(&room, &None)).await, ["run both"]);
    room.settle(&two);
    assert_eq!(heard(&mut sit(&room, &None)).await, ["nothing to run"]);
}

#[tokio::test]
async fn what_was_given_to_a_dead_client_is_told_again() {
    let (room, agent) = (room(), Some("a".to_owned()));
    room.note(&turn("t1"), Stage::Asked);
    let mut dead = sit(&room, &agent);
    told(&room, &["a", "end"]);
    room.note(&turn("t1"), Stage::Over);
    dead.next().await.unwrap();
    drop(dead);
    assert!(room.awaited_by(&agent) && !room.awaited_by(&None));
    let mut back = sit(&room, &agent);
    assert_eq!(heard(&mut back).await, ["a", "end"]);
    assert!(!room.awaited_by(&agent));
}

#[tokio::test]
async fn who_stopped_a_turn_hears_its_end_alone() {
    let (room, agent) = (room(), Some("a".to_owned()));
    room.note(&turn("t1"), Stage::Asked);
    let (mut one, mut other) = (sit(&room, &agent), sit(&room, &None));
    room.stopping(&agent, "t").done();
    told(&room, &["a", "end"]);
    assert_eq!(heard(&mut one).await, ["stopped"]);
    assert_eq!(heard(&mut other).await, ["a", "end"]);
}

#[tokio::test]
async fn a_shut_room_tells_nothing_more() {
    let room = room();
    let mut seat = sit(&room, &None);
    room.shut.cancel();
    assert!(seat.next().await.is_none());
}

#[tokio::test]
async fn an_end_that_somebody_has_not_heard_is_kept_for_the_next_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let session = SessionId::named("s".into());
    let spool = || Spool::of(folder.path(), "u", &session);
    let about = || (session.clone(), "c".to_owned());
    let room = Arc::new(Room::new(about(), Time::default(), spool()));
    room.note(&turn("t1"), Stage::Asked);
    let agents = ["a", "b"].map(|name| Some(name.to_owned()));
    let [mut one, mut other] = [&agents[0], &agents[1]].map(|agent| sit(&room, agent));
    told(&room, &["a", "end"]);
    room.note(&turn("t1"), Stage::Over);
    room.settled();
    heard(&mut one).await;
    let kept = spool().kept().unwrap();
    let next = Arc::new(Room::new(about(), Time::default(), Spool::default()));
    next.resume(None, kept);
    assert!(next.awaited_by(&agents[1]) && !next.awaited_by(&agents[0]));
    assert_eq!(heard(&mut sit(&next, &agents[1])).await, ["a", "end"]);
    // Once all have heard it, nothing is kept.
    heard(&mut other).await;
    assert!(spool().kept().is_none());
}
