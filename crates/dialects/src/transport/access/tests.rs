//! What is admitted, by its headers.

use axum::body::Body;
use axum::http::Request;

use super::*;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn access(token: Option<&str>, own: Option<&str>) -> Access {
    Access {
        token: token.map(Token::new),
        own: own.map(Token::new),
        hosts: vec!["desk.example".into()],
        origins: vec!["http://localhost:5173".into(), "https://desk.example".into()],
        asks_itself: |path| path == "/own",
        refuse: |_| Response::new(Body::empty()),
    }
}

/// The request line's target, and headers as `Name: value`.
fn request(target: &str, headers: &[&str]) -> Parts {
    let mut request = Request::builder().uri(target);
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        request = request.header(name, value);
    }
    request.body(()).unwrap().into_parts().0
}

#[track_caller]
fn check(headers: &[&str], admitted: bool) {
    let done = access(None, None).admit(HERE, &request("/", headers));
    assert_eq!(done.is_ok(), admitted, "{headers:?}: {done:?}");
}

#[test]
fn only_this_machine_and_named_hosts_are_admitted() {
    for host in
        ["127.0.0.1:8787", "localhost:1", "LocalHost:1", "[::1]:8787", "desk.example", "127.0.0.2"]
    {
        check(&[&format!("host: {host}")], true);
    }
    for host in
        ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", "", "10.1.1.1"]
    {
        check(&[&format!("host: {host}")], false);
    }
    check(&[], false);
    let lan = "192.168.1.5".parse().unwrap();
    let to = request("/", &["host: 192.168.1.5:8787"]);
    assert!(access(None, None).admit(lan, &to).is_ok(), "the address that was connected to");
    let absolute = request("http://evil.example/", &["host: localhost"]);
    assert!(access(None, None).admit(HERE, &absolute).is_err());
}

#[test]
fn an_empty_token_admits_nobody() {
    assert!(!Token::new("").matches(""));
    assert!(Token::new("t").matches("t"));
}

#[test]
fn an_origin_matches_exactly() {
    let host = "host: 127.0.0.1:8787";
    for origin in ["http://localhost:5173", "https://desk.example", "http://127.0.0.1:8787"] {
        check(&[host, &format!("origin: {origin}")], true);
    }
    for origin in [
        "http://localhost:5174",
        "https://localhost:5173",
        "http://localhost",
        "http://127.0.0.1:3000",
        "https://127.0.0.1:8787",
        "http://127.0.0.1",
        "http://desk.example",
        "https://evil.example",
        "http://localhost:5173.evil.example",
        "null",
        "file://",
        "",
    ] {
        check(&[host, &format!("origin: {origin}")], false);
    }
}

#[test]
fn nothing_is_said_twice() {
    let twice = |headers: &[&str]| {
        let denied = access(Some("t"), None).admit(HERE, &request("/", headers)).unwrap_err();
        assert_eq!(denied.status(), 400, "{headers:?}");
    };
    twice(&["host: localhost", "host: localhost"]);
    twice(&["host: localhost", "host: evil.example"]);
    twice(&["host: localhost", "origin: null", "origin: null"]);
    twice(&["host: localhost", "authorization: Bearer t", "authorization: Bearer t"]);
}

#[test]
fn a_preflight_needs_no_token_and_what_follows_does() {
    let mut parts = request("/", &["host: localhost", "origin: http://localhost:5173"]);
    let guard = access(Some("t"), None);
    assert_eq!(guard.admit(HERE, &parts), Err(Denied::Token));
    parts.method = Method::OPTIONS;
    assert_eq!(guard.admit(HERE, &parts), Err(Denied::Token));
    parts.headers.insert("access-control-request-method", HeaderValue::from_static("POST"));
    let page = HeaderValue::from_static("http://localhost:5173");
    assert_eq!(guard.admit(HERE, &parts), Ok(Admitted::Preflight(page)));
}

#[test]
fn a_token_is_compared_whole_and_never_shown() {
    let guard = access(Some("s3cret"), Some("own"));
    let with = |target: &str, value: &str| {
        guard
            .admit(HERE, &request(target, &["host: localhost", &format!("authorization: {value}")]))
    };
    assert!(with("/", "Bearer s3cret").is_ok() && with("/", "Bearer own").is_ok());
    for bad in ["Bearer s3cre", "Bearer s3crets", "s3cret", "bearer s3cret", "Bearer "] {
        assert_eq!(with("/", bad), Err(Denied::Token), "{bad}");
    }
    assert!(with("/own", "Bearer x").is_ok(), "the protocol asks there");
    let bare = |target: &str| guard.admit(HERE, &request(target, &["host: localhost"]));
    assert_eq!(bare("/"), Err(Denied::Token));
    assert!(bare("/ws?access_token=s3cret").is_ok());
    assert_eq!(bare("/ws?access_token=s3cre"), Err(Denied::Token));
    assert!(!format!("{guard:?} {:?}", guard.token).contains("s3cret"));
}

#[test]
fn others_are_answered_only_where_a_token_is_asked_for() {
    let (open, shut) = (access(None, Some("own")), access(Some("t"), None));
    for other in [Peer::OtherUser, Peer::Elsewhere, Peer::Unknown] {
        assert!(open.admit_peer(other).is_err() && shut.admit_peer(other).is_ok(), "{other:?}");
    }
    assert!(open.admit_peer(Peer::SameUser).is_ok());
    assert!(
        open.admit_peer(Peer::OwnCommand).is_err() && shut.admit_peer(Peer::OwnCommand).is_err()
    );
}
