//! Which URLs may be asked, and where a redirect may lead.

use super::*;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[track_caller]
fn refused(text: &str, why: &str) {
    assert_eq!(FetchPolicy::default().check(&url(text)), Err(why.to_owned()), "{text}");
}

#[test]
fn a_public_server_may_be_asked() {
    for text in [
        "http://example.org",
        "https://example.org/a?b#c",
        "HTTPS://EXAMPLE.ORG:8443/",
        "http://1.1.1.1/",
        "https://[2606:4700::1111]:1024/",
    ] {
        assert_eq!(FetchPolicy::default().check(&url(text)), Ok(()), "{text}");
    }
}

#[test]
fn other_schemes_users_and_ports_are_refused() {
    refused("file:///etc/passwd", "only http and https are fetched, not file");
    refused("ftp://example.org/", "only http and https are fetched, not ftp");
    refused("data:text/plain,x", "only http and https are fetched, not data");
    let user = "a URL with a user name or password is not fetched";
    refused("http://me@example.org/", user);
    refused("http://:secret@example.org/", user);
    refused("https://example.org:22/", "port 22 is not one of web servers");
    refused("http://example.org:0/", "port 0 is not one of web servers");
    refused("http://example.org:1023/", "port 1023 is not one of web servers");
}

#[test]
fn however_a_private_address_is_written_it_is_seen() {
    let loopback = "127.0.0.1 is not a public address: loopback";
    for text in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "http://%31%32%37.0.0.1/",
        "http://\u{ff11}27.0.0.1/",
    ] {
        refused(text, loopback);
    }
    refused("http://[::1]/", "::1 is not a public address: loopback");
    refused(
        "http://[::ffff:10.0.0.1]/",
        "::ffff:10.0.0.1 is not a public address: IPv4 in disguise",
    );
    refused(
        "http://169.254.169.254/latest/meta-data",
        "169.254.169.254 is not a public address: link-local",
    );
}

#[test]
fn what_is_named_may_be_reached() {
    let named = ["127.0.0.1:8080", "[::1]:22", "Wiki.Local:80"].map(str::to_owned);
    let reach = FetchPolicy::new(&named).expect("they are hosts and ports");
    for text in ["http://127.0.0.1:8080/x", "http://[::1]:22/", "http://wiki.local/"] {
        assert_eq!(reach.check(&url(text)), Ok(()), "{text}");
    }
    assert!(reach.check(&url("http://127.0.0.1:8081/")).is_err());
    assert!(reach.check(&url("http://127.0.0.2:8080/")).is_err());
    for wrong in ["", "127.0.0.1", "x:", ":80", "x:99999", "a/b:80", "me@x:80", "http://x:80"] {
        assert!(FetchPolicy::new(&[wrong.to_owned()]).is_err(), "{wrong}");
    }
}

#[test]
fn a_redirect_does_not_give_up_encryption() {
    let check = |from: &str, location: &str| moved(&url(from), location).map(String::from);
    let lost = Err("a redirect from https to http is not followed: http://b.org/".to_owned());
    assert_eq!(check("https://a.org/x", "http://b.org/"), lost);
    assert_eq!(check("http://a.org/x", "https://b.org/"), Ok("https://b.org/".to_owned()));
    assert_eq!(check("https://a.org/x/y", "../z"), Ok("https://a.org/z".to_owned()));
    assert_eq!(check("https://a.org/", "//b.org/"), Ok("https://b.org/".to_owned()));
}
