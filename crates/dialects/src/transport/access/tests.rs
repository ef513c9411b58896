//! Admission by headers.

use axum::body::Body;
use axum::http::Request;

use super::*;

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn access(token: Option<&str>, protocol_token: Option<&str>) -> Access {
    Access {
        token: token.map(Token::new),
        protocol_token: protocol_token.map(Token::new),
        hosts: vec!["desk.example".into()],
        origins: vec!["http://localhost:5173".into(), "https://desk.example".into()],
        has_own_auth: |path| path == "/protocol",
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
fn check(headers: &[&str], expected: bool) {
    let admitted = access(None, None).admit(LOCAL, &request("/", headers));
    assert_eq!(admitted.is_ok(), expected, "{headers:?}: {admitted:?}");
}

#[test]
fn only_local_and_configured_hosts_are_admitted() {
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
    assert!(access(None, None).admit(LOCAL, &absolute).is_err());
}

#[test]
fn an_empty_token_matches_nothing() {
    assert!(!Token::new("").matches(""));
    assert!(Token::new("t").matches("t"));
}

#[test]
fn origins_match_exactly() {
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
fn duplicate_headers_are_refused() {
    let refused_as_duplicate = |headers: &[&str]| {
        let denied = access(Some("t"), None).admit(LOCAL, &request("/", headers)).unwrap_err();
        assert_eq!(denied.status(), 400, "{headers:?}");
    };
    refused_as_duplicate(&["host: localhost", "host: localhost"]);
    refused_as_duplicate(&["host: localhost", "host: evil.example"]);
    refused_as_duplicate(&["host: localhost", "origin: null", "origin: null"]);
    refused_as_duplicate(&[
        "host: localhost",
        "authorization: Bearer t",
        "authorization: Bearer t",
    ]);
}

#[test]
fn a_preflight_request_needs_no_token_but_the_next_one_does() {
    let mut parts = request("/", &["host: localhost", "origin: http://localhost:5173"]);
    let access_rules = access(Some("t"), None);
    assert_eq!(access_rules.admit(LOCAL, &parts), Err(Denied::Token));
    parts.method = Method::OPTIONS;
    assert_eq!(access_rules.admit(LOCAL, &parts), Err(Denied::Token));
    parts.headers.insert("access-control-request-method", HeaderValue::from_static("POST"));
    let page = HeaderValue::from_static("http://localhost:5173");
    assert_eq!(access_rules.admit(LOCAL, &parts), Ok(Admitted::Preflight(page)));
}

#[test]
fn a_token_must_match_completely_and_is_never_shown() {
    let access_rules = access(Some("s3cret"), Some("own"));
    let with = |target: &str, value: &str| {
        access_rules.admit(
            LOCAL,
            &request(target, &["host: localhost", &format!("authorization: {value}")]),
        )
    };
    assert!(with("/", "Bearer s3cret").is_ok() && with("/", "Bearer own").is_ok());
    for bad in ["Bearer s3cre", "Bearer s3crets", "s3cret", "bearer s3cret", "Bearer "] {
        assert_eq!(with("/", bad), Err(Denied::Token), "{bad}");
    }
    assert!(with("/protocol", "Bearer x").is_ok(), "the protocol checks it there");
    let bare = |target: &str| access_rules.admit(LOCAL, &request(target, &["host: localhost"]));
    assert_eq!(bare("/"), Err(Denied::Token));
    assert!(bare("/ws?access_token=s3cret").is_ok());
    assert_eq!(bare("/ws?access_token=s3cre"), Err(Denied::Token));
    assert!(!format!("{access_rules:?} {:?}", access_rules.token).contains("s3cret"));
}

#[test]
fn other_peers_are_admitted_only_if_a_token_is_required() {
    let (without_token, with_token) = (access(None, Some("own")), access(Some("t"), None));
    for other in [Peer::OtherUser, Peer::OtherMachine, Peer::Unknown] {
        assert!(
            without_token.admit_peer(other).is_err() && with_token.admit_peer(other).is_ok(),
            "{other:?}"
        );
    }
    assert!(without_token.admit_peer(Peer::SameUser).is_ok());
    assert!(
        without_token.admit_peer(Peer::OwnCommand).is_err()
            && with_token.admit_peer(Peer::OwnCommand).is_err()
    );
}
