//! What an engine is asked, and what its refusals mean.

use reqwest::StatusCode;

use super::*;

fn url(api: SearchApi, base: &str, query: &str) -> Result<String, String> {
    SearchEngine::new(api, base, None)?.url(query, 5).map(String::from)
}

#[test]
fn a_query_is_one_parameter_whatever_is_in_it() {
    let nasty = "a&count=99#x ü";
    assert_eq!(
        url(SearchApi::Brave, "https://api.search.brave.com", nasty).unwrap(),
        "https://api.search.brave.com/res/v1/web/search?q=a%26count%3D99%23x+%C3%BC&count=5\
         &result_filter=web&text_decorations=false"
    );
    for base in ["http://10.0.0.5:8888/searx", "http://10.0.0.5:8888/searx/"] {
        let expected = "http://10.0.0.5:8888/searx/search?q=a%26count%3D99%23x+%C3%BC&format=json";
        assert_eq!(url(SearchApi::Searxng, base, nasty).unwrap(), expected);
    }
}

#[test]
fn an_address_that_is_none_is_refused() {
    for (base, why) in [
        ("", "no URL"),
        ("searx.local", "no URL"),
        ("file:///etc", "only http and https"),
        ("http://me:pw@searx.local", "user name or password"),
        ("http://searx.local/?q=1", "more than an address"),
    ] {
        let error = SearchEngine::new(SearchApi::Searxng, base, None).unwrap_err();
        assert!(error.contains(why), "{base}: {error}");
    }
    assert!(SearchEngine::new(SearchApi::Brave, "https://x.org", Some("a\nb")).is_err());
}

#[test]
fn a_key_is_never_shown() {
    for (_, api) in SearchApi::ALL {
        let engine = SearchEngine::new(api, "https://x.org", Some("BSA-hush")).unwrap();
        assert!(!format!("{engine:?}").contains("hush"));
        assert_eq!(engine.without_key("no BSA-hush here".into()), "no *** here");
    }
}

#[track_caller]
fn check(api: SearchApi, status: u16, headers: &[(&'static str, &str)], body: &str, then: &str) {
    let status = StatusCode::from_u16(status).unwrap();
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    assert_eq!(error_reply::words(api, status, &map, body.as_bytes()), then);
}

#[test]
fn refusals_are_said_in_words() {
    let limited = r#"{"type":"ErrorResponse","error":{"id":"x","status":429,"code":"RATE_LIMITED",
        "detail":"Request rate limit exceeded for plan.","meta":{"component":"rate_limiter"}}}"#;
    let many = "the search server has had too many requests for now";
    let second = [("x-ratelimit-remaining", "0, 1999"), ("x-ratelimit-reset", "1, 1419704")];
    let month = [("x-ratelimit-remaining", "0, 0"), ("x-ratelimit-reset", "1, 1419704")];
    let said = "Request rate limit exceeded for plan";
    check(SearchApi::Brave, 429, &second, limited, &format!("{many}: {said}; try again in 1 s"));
    check(SearchApi::Brave, 429, &month, limited, &format!("{many}: {said}; try again in 17 days"));
    check(SearchApi::Searxng, 429, &[], "Too Many Requests", many);
    let after = [("retry-after", "600")];
    check(SearchApi::Searxng, 429, &after, "", &format!("{many}; try again in 10 min"));
    let token = r#"{"type":"ErrorResponse","error":{"status":422,"code":"SUBSCRIPTION_TOKEN_INVALID",
        "detail":"The provided subscription token is invalid."}}"#;
    check(
        SearchApi::Brave,
        422,
        &[],
        token,
        "the search server does not take the key of this daemon: The provided subscription token is invalid",
    );
    check(
        SearchApi::Searxng,
        403,
        &[],
        "<html>",
        "the search server refuses: `search.formats` of its settings.yml must name json, or it does \
         not let this machine in",
    );
    check(SearchApi::Brave, 401, &[], "{", "the search server wants a key, or another one");
    check(SearchApi::Brave, 503, &[], "", "the search server says 503 Service Unavailable");
}
