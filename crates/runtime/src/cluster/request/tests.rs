//! Tests of the encoding of requests and replies.

use std::sync::Arc;

use quintet_kernel::command::{Approve, NewMessage, TurnStart};
use quintet_kernel::event::{ApprovalDecision, DecidedBy, RememberScope, TurnOptions};
use quintet_kernel::id::GeneratedId as _;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::{ApprovalId, TurnId};

use super::*;

fn session() -> SessionId {
    SessionId::named("s1".into())
}

fn say(key: Option<&str>) -> Action {
    let options = TurnOptions { key: key.map(Into::into), ..TurnOptions::default() };
    let say =
        NewMessage::new(Role::User, vec![Part::Text("hello".into())], TurnStart::Queued, options);
    Action::Submit(Box::new(Command::AddMessage(Box::new(say))))
}

fn request(action: Action) -> Request {
    let from = Sender { name: "a".into(), instance: "1".into() };
    Request { key: "k1".into(), from, session: session(), action }
}

#[test]
fn a_request_survives_encoding() {
    let approve = Command::Approve(Approve {
        question: ApprovalId::parse("call_1").unwrap(),
        turn: Some(TurnId::named("t1".into())),
        answer: ApprovalDecision::Allow,
        reason: Some("fine".into()),
        by: DecidedBy::Client,
        remember: RememberScope::Once,
        content: None,
    });
    for action in [say(Some("k")), Action::Submit(Box::new(approve)), Action::Remove] {
        let request = request(action);
        let read = decode(&request.encode()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{request:?}"));
    }
}

#[test]
fn a_reply_survives_encoding() {
    let at = Time::from_micros(7);
    let event = Event::Labelled { key: "a".into(), value: None };
    let records = vec![Arc::new(Record { seq: 3, at, event: event.clone() })];
    let receipt = Receipt { session: session(), records };
    let reply = Reply::decode(&Reply::from(Ok(Done::Receipt(receipt))).encode()).unwrap();
    let Reply::Receipt { records, .. } = reply else { panic!("{reply:?}") };
    assert_eq!(records, [(3, at, event)]);
    let refusal = Refusal::Busy(session());
    let reply = Reply::from(Err(Error::Refused(refusal.clone())));
    let Reply::Failed(failure) = Reply::decode(&reply.encode()).unwrap() else { panic!() };
    assert!(matches!(Error::from(failure), Error::Refused(given) if given == refusal));
}

#[test]
fn a_node_of_another_version_is_refused() {
    let request = request(Action::Remove);
    let body = String::from_utf8(request.encode()).unwrap().replace(VERSION, "0.0.1");
    let reply = decode(body.as_bytes()).unwrap_err();
    assert!(matches!(Reply::decode(&reply), Ok(Reply::Version(version)) if version == VERSION));
}

#[test]
fn a_message_is_repeatable_once_it_has_a_key() {
    assert!(!say(None).is_repeatable());
    let keyed = say(None).with_key("k");
    assert!(keyed.is_repeatable());
    assert_eq!(keyed.message_key(), Some("k"));
    assert_eq!(say(Some("own")).with_key("k").message_key(), Some("own"));
}
