//! `fetch_url` reads pages of real servers, and reaches nothing that it should not.

use quintet_kernel::tool::{Ending, Risk};
use serde_json::json;

use crate::bench::{Bench, text, until};
use crate::server::{Server, answer};

const HTML: &str = "Content-Type: text/html; charset=utf-8\r\n";

async fn serving(say: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> (Server, Bench) {
    let server = Server::start(say).await;
    let bench = Bench::fetching(&[server.address.to_string()]);
    (server, bench)
}

#[tokio::test]
async fn a_page_is_read_as_text() {
    let page = "<title>Hi &amp; ho</title><h1>Top</h1><p>See <a href='/next'>this</a>.";
    let (server, bench) = serving(move |_| answer("200 OK", HTML, page.as_bytes())).await;
    let url = server.url("/a?q=1#part");
    let expected = format!(
        "{url}\n200 OK, text/html, 70 bytes\ntitle: Hi & ho\n\n# Top\n\nSee [this]({}).",
        server.url("/next")
    );
    assert_eq!(bench.tell("fetch_url", json!({ "url": url })).await, expected);
    let raw = bench.tell("fetch_url", json!({ "url": url, "raw": true })).await;
    assert_eq!(raw, format!("{url}\n200 OK, text/html, 70 bytes\n\n{page}"));
    let head = server.asked()[0].to_ascii_lowercase();
    assert!(head.starts_with("get /a?q=1 http/1.1\r\n"), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
    assert!(!head.contains("cookie") && !head.contains("referer"), "{head}");
    assert_eq!(bench.heard().lines().next().unwrap(), format!("GET {url}"));
}

#[tokio::test]
async fn a_person_sees_where_the_data_goes() {
    let bench = Bench::fetching(&[]);
    let url = "https://example.org/?secret=1";
    let shown = bench.assess("fetch_url", json!({ "url": url })).await;
    assert_eq!((shown.risk, shown.reversible, shown.settled), (Risk::Medium, false, None));
    assert_eq!(shown.preview, format!("GET {url}"));
    assert_eq!(
        shown.reasons,
        ["asks example.org over the network", "whatever the URL holds leaves this machine"]
    );
    for url in ["http://10.0.0.1/", "file:///etc/passwd", "nothing", "http://a:b@example.org"] {
        let settled = bench.assess("fetch_url", json!({ "url": url })).await.settled.unwrap();
        assert_eq!(settled.ending, Ending::Failed, "{url}");
    }
}

#[tokio::test]
async fn nothing_private_is_reached() {
    let server = Server::start(|_| answer("200 OK", HTML, b"secret")).await;
    let port = server.address.port();
    let bench = Bench::fetching(&["127.0.0.1:1".to_owned()]);
    let told = |url: String| bench.tell("fetch_url", json!({ "url": url }));
    assert_eq!(told(server.url("/")).await, "! 127.0.0.1 is not a public address: loopback");
    // A name says nothing of itself; its address does.
    let got = told(format!("http://localhost:{port}/")).await;
    assert!(got.starts_with("! localhost leads to "), "{got}");
    assert!(got.ends_with(", which is not a public address: loopback"), "{got}");
    assert_eq!(server.asked().len(), 0);
    let named = Bench::fetching(&[format!("localhost:{port}")]);
    let got = named.tell("fetch_url", json!({ "url": format!("http://localhost:{port}/") })).await;
    assert!(got.ends_with("\n\nsecret"), "{got}");
}

#[tokio::test]
async fn redirects_are_followed_and_judged() {
    let (server, bench) = serving(|path| {
        let to = |place: &str| answer("302 Found", &format!("Location: {place}\r\n"), b"");
        match path {
            "/one" => to("two?x=1"),
            "/two?x=1" => answer("200 OK", "Content-Type: text/plain\r\n", b"here"),
            "/out" => to("http://127.0.0.2:9000/"),
            "/meta" => to("http://169.254.169.254/latest/meta-data"),
            "/file" => to("file:///etc/passwd"),
            "/user" => to("http://me:pw@example.org/"),
            "/bad" => to("http://["),
            "/none" => answer("302 Found", "Content-Type: text/plain\r\n", b"nowhere"),
            _ => to("/loop"),
        }
    })
    .await;
    let got = bench.tell("fetch_url", json!({ "url": server.url("/one") })).await;
    assert_eq!(got, format!("{}\n200 OK, text/plain, 4 bytes\n\nhere", server.url("/two?x=1")));
    for (path, why) in [
        ("/out", "127.0.0.2 is not a public address: loopback"),
        ("/meta", "169.254.169.254 is not a public address: link-local"),
        ("/file", "only http and https are fetched, not file"),
        ("/user", "a URL with a user name or password is not fetched"),
    ] {
        let got = bench.tell("fetch_url", json!({ "url": server.url(path) })).await;
        assert_eq!(got, format!("! {why}"), "{path}");
    }
    let got = bench.tell("fetch_url", json!({ "url": server.url("/bad") })).await;
    assert!(got.starts_with("! redirected to no URL: \"http://[\""), "{got}");
    let got = bench.tell("fetch_url", json!({ "url": server.url("/none") })).await;
    assert!(got.ends_with("302 Found, text/plain, 7 bytes\n\nnowhere"), "{got}");
    let before = server.asked().len();
    let got = bench.tell("fetch_url", json!({ "url": server.url("/loop") })).await;
    assert_eq!(got, format!("! more than 5 redirects, the last to {}", server.url("/loop")));
    assert_eq!(server.asked().len() - before, 6);
}

#[tokio::test]
async fn a_long_body_is_cut() {
    let (server, bench) = serving(|path| {
        let body = vec![b'x'; if path == "/long" { 6 << 20 } else { 100_000 }];
        answer("200 OK", "Content-Type: text/plain\r\n", &body)
    })
    .await;
    let output = bench.run("fetch_url", json!({ "url": server.url("/long") })).await;
    let read = 5 << 20;
    assert!(text(&output).ends_with(&format!("x\n[only the first {read} bytes were read]\n")));
    assert!(text(&output).len() < 40_000);
    assert_eq!(output.files[0].name, "page.txt");
    assert!(output.files[0].content.len() > read);
    let input = json!({ "url": server.url("/"), "max_bytes": 3 });
    let got = bench.tell("fetch_url", input).await;
    assert!(got.ends_with("\n\nxxx\n[only the first 3 bytes were read]\n"), "{got}");
    let input = json!({ "url": server.url("/"), "max_bytes": 5 << 21 });
    assert!(bench.tell("fetch_url", input).await.starts_with("! invalid input: /max_bytes: "));
}

#[tokio::test]
async fn the_head_alone_can_be_asked_for() {
    let (server, bench) =
        serving(|_| answer("200 OK", "Content-Type: image/png\r\nContent-Length: 7\r\n", b""))
            .await;
    let input = json!({ "url": server.url("/"), "max_bytes": 0 });
    let expected = format!("{}\n200 OK, image/png, 7 bytes", server.url("/"));
    assert_eq!(bench.tell("fetch_url", input).await, expected);
    assert!(server.asked()[0].starts_with("HEAD / "));
}

#[tokio::test]
async fn only_texts_are_read_in_their_own_encoding() {
    let (server, bench) = serving(|path| {
        let kind =
            |kind: &str, body: &[u8]| answer("200 OK", &format!("Content-Type: {kind}\r\n"), body);
        match path {
            "/json" => kind("application/problem+json", b"{\"a\":1}"),
            "/svg" => kind("image/svg+xml", b"<svg/>"),
            "/latin" => kind("text/plain; charset=\"ISO-8859-1\"", b"caf\xe9"),
            "/meta" => kind("text/html", b"<meta charset=windows-1251><p>\xc4\xe0"),
            "/bom" => kind("text/plain", b"\xff\xfeh\0i\0"),
            "/broken" => kind("text/plain", b"a\xffb"),
            "/none" => answer("200 OK", "", b"plain"),
            "/png" => kind("image/png", b"\x89PNG"),
            "/zip" => kind("application/octet-stream", b"PK"),
            _ => answer("200 OK", "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n", b"x"),
        }
    })
    .await;
    for (path, body) in [
        ("/json", "{\"a\":1}"),
        ("/svg", "<svg/>"),
        ("/latin", "café"),
        ("/meta", "Да"),
        ("/bom", "hi"),
        ("/broken", "a\u{fffd}b"),
        ("/none", "plain"),
    ] {
        let got = bench.tell("fetch_url", json!({ "url": server.url(path) })).await;
        assert!(got.ends_with(&format!("\n\n{body}")), "{path}: {got}");
    }
    for (path, why) in [
        ("/png", "image/png: not a text, so nothing was read"),
        ("/zip", "application/octet-stream: not a text, so nothing was read"),
        ("/gzip", "text/plain: its body is packed (gzip)"),
    ] {
        let got = bench.tell("fetch_url", json!({ "url": server.url(path) })).await;
        assert_eq!(got, format!("! {}\n200 OK, {why}", server.url(path)));
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_a_failure_with_its_text() {
    let (server, bench) = serving(|path| match path {
        "/gone" => answer("404 Not Found", HTML, b"<p>no such page"),
        "/torn" => answer("200 OK", "Content-Type: text/plain\r\nContent-Length: 9\r\n", b"x"),
        _ => Some(b"nonsense\r\n\r\n".to_vec()),
    })
    .await;
    let output = bench.run("fetch_url", json!({ "url": server.url("/gone") })).await;
    assert_eq!(output.outcome.error.as_deref(), Some("the server says 404 Not Found"));
    assert!(text(&output).ends_with("\n\nno such page"));
    for path in ["/torn", "/nonsense"] {
        let got = bench.tell("fetch_url", json!({ "url": server.url(path) })).await;
        assert!(got.starts_with("! "), "{got}");
    }
    // It does not speak TLS.
    let url = server.url("/").replace("http:", "https:");
    let got = bench.tell("fetch_url", json!({ "url": url })).await;
    assert!(got.starts_with("! 127.0.0.1: "), "{got}");
    let silent = Bench::fetching(&["127.0.0.1:1".to_owned()]);
    let got = silent.tell("fetch_url", json!({ "url": "http://127.0.0.1:1/" })).await;
    assert!(got.starts_with("! 127.0.0.1: "), "{got}");
}

#[tokio::test]
async fn cancel_ends_it() {
    let (server, bench) = serving(|_| None).await;
    let cancel = async {
        until("a request", || (!server.asked().is_empty()).then_some(())).await;
        bench.cancel();
    };
    let input = json!({ "url": server.url("/") });
    let (output, ()) = tokio::join!(bench.run("fetch_url", input), cancel);
    assert_eq!(output.outcome.ending, Ending::Cancelled);
}

/// The clock jumps ahead whenever everybody waits.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let (server, bench) = serving(|_| None).await;
    let got = bench.tell("fetch_url", json!({ "url": server.url("/") })).await;
    // Which of the two limits is met first depends on how fast the connection is made.
    assert!(got == "! timed out after 30s" || got.starts_with("! 127.0.0.1: "), "{got}");
}

#[tokio::test]
async fn it_is_not_there_unless_it_is_wanted() {
    assert!(!Bench::new().tools().contains(&"fetch_url".to_owned()));
    assert!(Bench::fetching(&[]).tools().contains(&"fetch_url".to_owned()));
}
