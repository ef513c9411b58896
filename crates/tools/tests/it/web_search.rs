//! `web_search` asks a search engine, whose answers are written after the vendors' documents.

use quintet_kernel::tool::{Ending, Risk};
use quintet_tools::{SearchApi, SearchEngine};
use serde_json::json;

use crate::bench::{Bench, text, until};
use crate::server::{Server, answer};

const JSON: &str = "Content-Type: application/json\r\n";
const KEY: &str = "BSAhush0123456789";
const BRAVE: &str = include_str!("../golden/search/brave.json");
const SEARXNG: &str = include_str!("../golden/search/searxng.json");

async fn serving(
    api: SearchApi,
    say: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
) -> (Server, Bench) {
    let server = Server::start(say).await;
    let key = api.needs_key().then_some(KEY);
    let bench = Bench::searching(SearchEngine::new(api, &server.url(""), key).unwrap());
    (server, bench)
}

#[tokio::test]
async fn brave_is_asked_with_its_key() {
    let (server, bench) =
        serving(SearchApi::Brave, |_| answer("200 OK", JSON, BRAVE.as_bytes())).await;
    let input = json!({ "query": "rust <T>", "count": 3, "explanation": "to know" });
    let got = bench.tell("web_search", input).await;
    assert_eq!(got, include_str!("../golden/search/brave.txt").trim_end());
    let head = server.asked()[0].to_ascii_lowercase();
    let path =
        "get /res/v1/web/search?q=rust+%3ct%3e&count=3&result_filter=web&text_decorations=false";
    assert!(head.starts_with(&format!("{path} http/1.1\r\n")), "{head}");
    assert!(head.contains("x-subscription-token: bsahush0123456789\r\n"), "{head}");
    assert!(head.contains("accept: application/json\r\n"), "{head}");
    assert_eq!(bench.heard(), "search 127.0.0.1 for \"rust <T>\"\n");
}

#[tokio::test]
async fn a_searxng_of_ones_own_is_asked_for_json() {
    let (server, bench) =
        serving(SearchApi::Searxng, |_| answer("200 OK", JSON, SEARXNG.as_bytes())).await;
    let got = bench.tell("web_search", json!({ "query": " rust ", "count": 2 })).await;
    assert_eq!(got, include_str!("../golden/search/searxng.txt").trim_end());
    let head = server.asked()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /search?q=rust&format=json http/1.1\r\n"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
}

#[tokio::test]
async fn nothing_found_is_an_answer() {
    let brave = r#"{"type":"search","query":{"original":"x"}}"#;
    let (_server, bench) =
        serving(SearchApi::Brave, move |_| answer("200 OK", JSON, brave.as_bytes())).await;
    let got = bench.tell("web_search", json!({ "query": "x" })).await;
    assert_eq!(got, "nothing was found for \"x\"");
    let searxng = r#"{"query":"x","results":[],"unresponsive_engines":[["google","timeout"],7]}"#;
    let (_server, bench) =
        serving(SearchApi::Searxng, move |_| answer("200 OK", JSON, searxng.as_bytes())).await;
    let got = bench.tell("web_search", json!({ "query": "x" })).await;
    assert_eq!(
        got,
        "nothing was found for \"x\"\n\n[engines that gave no answer: google (timeout)]"
    );
}

#[tokio::test]
async fn an_engine_that_refuses_says_why() {
    let (_server, bench) = serving(SearchApi::Brave, |_| {
        let head =
            format!("{JSON}X-RateLimit-Remaining: 0, 1999\r\nX-RateLimit-Reset: 1, 1419704\r\n");
        // It should not repeat the key; if it does, the model does not read it.
        let body = format!(r#"{{"error":{{"code":"RATE_LIMITED","detail":"Slow down, {KEY}."}}}}"#);
        answer("429 Too Many Requests", &head, body.as_bytes())
    })
    .await;
    let got = bench.tell("web_search", json!({ "query": "x" })).await;
    let many = "the search server has had too many requests for now";
    assert_eq!(got, format!("! {many}: Slow down, ***; try again in 1 s"));
    let (server, bench) = serving(SearchApi::Searxng, |path| match path {
        "/search?q=moved&format=json" => answer("302 Found", "Location: http://10.0.0.1/\r\n", b""),
        "/search?q=page&format=json" => answer("200 OK", "Content-Type: text/html\r\n", b"<html>"),
        "/search?q=long&format=json" => answer("200 OK", JSON, &vec![b' '; 3 << 20]),
        "/search?q=torn&format=json" => answer("200 OK", "Content-Length: 9\r\n", b"{"),
        _ => answer("403 Forbidden", "", b""),
    })
    .await;
    for (query, why) in [
        ("moved", "the search server points elsewhere, to \"http://10.0.0.1/\"; not followed"),
        ("page", "the search server's answer cannot be understood: "),
        ("long", "the search server's answer has more than 2097152 bytes"),
        ("torn", ""),
        (
            "closed",
            "the search server refuses: `search.formats` of its settings.yml must name json",
        ),
    ] {
        let got = bench.tell("web_search", json!({ "query": query })).await;
        assert!(got.starts_with(&format!("! {why}")), "{query}: {got}");
    }
    assert_eq!(server.asked().len(), 5);
}

#[tokio::test]
async fn a_long_list_is_cut() {
    let pages: Vec<_> = (0..40)
        .map(|n| json!({ "url": format!("https://e.org/{n}"), "title": "t\n9. x", "content": "é".repeat(5000) }))
        .collect();
    let body = json!({ "results": pages }).to_string();
    let (_server, bench) =
        serving(SearchApi::Searxng, move |_| answer("200 OK", JSON, body.as_bytes())).await;
    let output = bench.run("web_search", json!({ "query": "x", "count": 20 })).await;
    let got = text(&output);
    assert!(got.contains("20. t 9. x\n   https://e.org/19\n   é") && !got.contains("21. "));
    assert!(got.len() < 20 * 700, "{}", got.len());
    for count in [0, 21] {
        let got = bench.tell("web_search", json!({ "query": "x", "count": count })).await;
        assert!(got.starts_with("! invalid input: /count: "), "{got}");
    }
}

#[tokio::test]
async fn a_person_sees_what_is_searched_for() {
    let engine =
        SearchEngine::new(SearchApi::Brave, "https://api.search.brave.com", Some(KEY)).unwrap();
    let bench = Bench::searching(engine);
    let shown = bench.assess("web_search", json!({ "query": "my secret" })).await;
    assert_eq!((shown.risk, shown.reversible, shown.settled), (Risk::Medium, false, None));
    assert_eq!(shown.preview, "search api.search.brave.com for \"my secret\"");
    for input in [json!({}), json!({ "query": " " }), json!({ "query": "x".repeat(401) })] {
        let settled = bench.assess("web_search", input).await.settled.unwrap();
        assert_eq!(settled.ending, Ending::Failed);
    }
}

#[tokio::test]
async fn cancel_ends_a_search() {
    let (server, bench) = serving(SearchApi::Brave, |_| None).await;
    let cancel = async {
        until("a request", || (!server.asked().is_empty()).then_some(())).await;
        bench.cancel();
    };
    let (output, ()) = tokio::join!(bench.run("web_search", json!({ "query": "x" })), cancel);
    assert_eq!(output.outcome.ending, Ending::Cancelled);
}

/// The clock jumps ahead whenever everybody waits.
#[tokio::test(start_paused = true)]
async fn an_engine_that_says_nothing_is_given_up() {
    let (_server, bench) = serving(SearchApi::Brave, |_| None).await;
    let got = bench.tell("web_search", json!({ "query": "x" })).await;
    // Which of the two limits is met first depends on how fast the connection is made.
    assert!(got == "! timed out after 20s" || got.starts_with("! 127.0.0.1: "), "{got}");
}

#[tokio::test]
async fn it_is_not_there_unless_an_engine_is() {
    assert!(!Bench::fetching(&[]).tools().contains(&"web_search".to_owned()));
}
