//! Pictures that clients hand in.

use reqwest::{Method, Response};
use serde_json::json;

use super::{AUTH, Guest, answer, detail};
use crate::daemon::{World, until};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0123456789";
/// SHA-256 of it.
const HASH: &str = "4eaad8ed6c82085cb8e9d91dbacb4f1e3d6d0cc252f6e6be60d461976dc5ee12";

async fn fetch(guest: &Guest, id: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = guest.request(Method::GET, &format!("/api/artifacts/{id}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

async fn png(guest: &Guest) -> String {
    let (status, said) = guest.hand_in(Some("image/png"), PNG).await;
    assert_eq!(status, 200, "{said}");
    said["artifact_id"].as_str().unwrap().into()
}

#[tokio::test]
async fn a_picture_is_kept_and_given_back_also_after_a_restart() {
    let mut world = World::start(AUTH).await;
    let guest = Guest::register(&world).await;
    let (status, said) = guest.hand_in(Some("image/png"), PNG).await;
    assert_eq!(status, 200, "{said}");
    let id = said["artifact_id"].as_str().unwrap();
    assert!(id.len() == 36 && id.ends_with(".png"), "{id}");
    assert_eq!((&said["content_type"], &said["size_bytes"]), (&json!("image/png"), &json!(18)));
    assert_eq!(said["sha256"], HASH);
    assert_eq!(said["url"], format!("{}/api/artifacts/{id}", world.windie()));
    world.terminate();
    world.restart();
    let response = fetch(&guest.again(&world), id, &[]).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "image/png");
    assert_eq!(response.headers()["content-length"], "18");
    assert_eq!(response.headers()["etag"], format!("\"{HASH}\""));
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.bytes().await.unwrap(), PNG);
}

#[tokio::test]
async fn the_bytes_tell_the_type() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let (status, said) = guest.hand_in(Some("image/png"), b"\xff\xd8\xff\xe0 JFIF").await;
    assert_eq!((status, &said["content_type"]), (200, &json!("image/jpeg")), "{said}");
    assert!(said["artifact_id"].as_str().unwrap().ends_with(".jpg"), "{said}");
    let unsupported = (415, detail("Unsupported content type"));
    // What begins like no picture is what the client says it is.
    let (status, said) = guest.hand_in(Some("image/png"), b"hello").await;
    assert_eq!((status, &said["content_type"]), (200, &json!("image/png")), "{said}");
    for (kind, content) in
        [("image/png", &b""[..]), ("image/gif", b"GIF89a...."), ("text/html", PNG)]
    {
        assert_eq!(guest.hand_in(Some(kind), content).await, unsupported, "{kind}");
    }
    assert_eq!(guest.hand_in(Some("image/jpg; x=y"), PNG).await.0, 200);
    assert_eq!(guest.hand_in(None, PNG).await, (400, detail("Missing content type")));
    let fault = json!([{ "type": "missing", "loc": ["body", "file"], "msg": "Field required" }]);
    let missing = (422, json!({ "detail": fault }));
    assert_eq!(answer(guest.upload("picture", Some("image/png"), PNG).await).await, missing);
    assert_eq!(guest.post("/api/artifacts/", json!({})).await, missing);
    let form = guest.request(Method::POST, "/api/artifacts/");
    let form = form.header("content-type", "multipart/form-data; boundary=edge");
    let cut = form.body("--edge\r\ncontent-disposition: form-data; name=\"file\"\r\n");
    assert_eq!(cut.send().await.unwrap().status(), 400);
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_leaves_nothing_behind() {
    let world = World::start(&format!("{AUTH}artifact_limit_bytes = 1000000\n")).await;
    let guest = Guest::register(&world).await;
    let sized = |size: usize| [PNG, &vec![7; size - PNG.len()]].concat();
    let (status, said) = guest.hand_in(Some("image/png"), &sized(1_000_000)).await;
    assert_eq!((status, &said["size_bytes"]), (200, &json!(1_000_000)), "{said}");
    for size in [1_000_001, 8_000_000] {
        let refused = guest.hand_in(Some("image/png"), &sized(size)).await;
        assert_eq!(refused, (413, detail("Artifact too large")));
    }
    let files = std::fs::read_dir(world.home.path().join("data/artifacts")).unwrap().flatten();
    let files: Vec<_> = files.filter(|entry| entry.path().is_file()).collect();
    assert_eq!(files.len(), 1);
    let unfinished = std::fs::read_dir(world.home.path().join("data/artifacts/tmp")).unwrap();
    assert_eq!(unfinished.count(), 0);
    let id = said["artifact_id"].as_str().unwrap();
    let whole = fetch(&guest, id, &[]).await.bytes().await.unwrap();
    assert!(whole == sized(1_000_000));
}

#[tokio::test]
async fn parts_are_given_and_what_is_known_is_not_sent_again() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let id = png(&guest).await;
    let check = async |range: &str, status: u16, shown: &str, content: &[u8]| {
        let response = fetch(&guest, &id, &[("range", range)]).await;
        assert_eq!(response.status(), status, "{range}");
        let header = response.headers().get("content-range").map(|value| value.to_str().unwrap());
        assert_eq!(header.unwrap_or_default(), shown, "{range}");
        if status != 416 {
            assert_eq!(response.bytes().await.unwrap(), content, "{range}");
        }
    };
    check("bytes=1-3", 206, "bytes 1-3/18", b"PNG").await;
    check("bytes=8-", 206, "bytes 8-17/18", b"0123456789").await;
    check("bytes=-2", 206, "bytes 16-17/18", b"89").await;
    check("bytes=17-99", 206, "bytes 17-17/18", b"9").await;
    check("bytes=18-", 416, "bytes */18", b"").await;
    check("bytes=0-1,3-4", 200, "", PNG).await;
    check("lines=1-2", 200, "", PNG).await;
    let tag = format!("\"{HASH}\"");
    let known = fetch(&guest, &id, &[("if-none-match", &tag)]).await;
    assert_eq!((known.status().as_u16(), &known.headers()["etag"]), (304, &tag.parse().unwrap()));
    assert!(known.bytes().await.unwrap().is_empty());
    let other = fetch(&guest, &id, &[("if-none-match", "\"x\"")]).await;
    assert_eq!(other.status(), 200);
    let changed = fetch(&guest, &id, &[("range", "bytes=1-3"), ("if-range", "\"x\"")]).await;
    assert_eq!(changed.status(), 200);
    let same = fetch(&guest, &id, &[("range", "bytes=1-3"), ("if-range", &tag)]).await;
    assert_eq!(same.status(), 206);
    let head = guest.request(Method::HEAD, &format!("/api/artifacts/{id}"));
    let head = head.send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-length"]),
        (200, &"18".parse().unwrap())
    );
}

#[tokio::test]
async fn nobody_sees_what_somebody_else_handed_in() {
    let world = World::start(AUTH).await;
    let (one, two) = (Guest::register(&world).await, Guest::register(&world).await);
    let id = png(&one).await;
    let path = format!("/api/artifacts/{id}");
    assert_eq!(fetch(&one, &id, &[]).await.status(), 200);
    let gone = (404, detail("Artifact not found"));
    assert_eq!(two.get(&path).await, gone);
    assert_eq!(answer(fetch(&two, &id, &[("range", "bytes=0-1")]).await).await, gone);
    let tag = format!("\"{HASH}\"");
    assert_eq!(answer(fetch(&two, &id, &[("if-none-match", &tag)]).await).await, gone);
    let stranger = Guest::stranger(&world);
    assert_eq!(stranger.get(&path).await, (401, detail("Missing install bearer token")));
    let refused = stranger.hand_in(Some("image/png"), PNG).await;
    assert_eq!(refused, (401, detail("Missing install bearer token")));
}

#[tokio::test]
async fn an_id_is_never_a_path() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let invalid = (400, detail("Invalid artifact id"));
    for id in
        ["x", "x.gif", ".png", "..%2f..%2fquintet.db", "a%00.png", "tmp", "a.png.exe", "é.png"]
    {
        assert_eq!(guest.get(&format!("/api/artifacts/{id}")).await, invalid, "{id}");
    }
    let gone = (404, detail("Artifact not found"));
    assert_eq!(guest.get("/api/artifacts/x.png").await, gone);
    assert_eq!(guest.get("/api/artifacts/a/b.png").await, (404, detail("Not Found")));
}

#[tokio::test]
async fn what_nobody_refers_to_goes_after_its_time() {
    let mut world = World::start(&format!("{AUTH}artifact_keep_seconds = 1\n")).await;
    let guest = Guest::register(&world).await;
    let id = png(&guest).await;
    let file = world.home.path().join("data/artifacts").join(&id);
    until("the file is deleted", async || !file.exists()).await;
    let gone = (404, detail("Artifact not found"));
    assert_eq!(guest.get(&format!("/api/artifacts/{id}")).await, gone);
    world.terminate();
}
