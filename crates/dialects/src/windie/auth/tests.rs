//! Bearer tokens of requests, and the form of new ids and tokens.

use super::*;

#[test]
fn a_token_follows_its_word_in_any_case() {
    let check = |value: &str, token: Option<&str>| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        assert_eq!(bearer(&headers), token, "{value:?}");
    };
    check("Bearer abc", Some("abc"));
    check("bearer abc", Some("abc"));
    check("BEARER   abc ", Some("abc"));
    check("Bearer ", None);
    check("Bearer", None);
    check("Basic abc", None);
    check("abc", None);
    assert_eq!(bearer(&HeaderMap::new()), None);
}

#[test]
fn names_and_tokens_look_as_clients_expect_and_are_never_the_same() {
    let (one, token) = fresh(Time::default(), None);
    let (two, other) = fresh(Time::default(), None);
    let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(one.id.strip_prefix("install_").is_some_and(is_hex), "{one:?}");
    assert!(one.user.strip_prefix("user_").is_some_and(is_hex), "{one:?}");
    assert_eq!(token.strip_prefix("wnd_install_").map(str::len), Some(43));
    assert!(one.id != two.id && one.user != two.user && token != other);
    assert_eq!(one.token, hashed(&token));
    assert_eq!(one.token.len(), 64);
    assert!(!format!("{one:?}").contains(&token));
    let id = uuid();
    assert!(is_hex(&id) && id.as_bytes()[12] == b'4' && b"89ab".contains(&id.as_bytes()[16]));
}
