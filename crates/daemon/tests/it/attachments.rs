//! Tests of files that are attached to a session and sent to models.

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::World;

async fn upload(
    client: &Client,
    session: &str,
    name: &str,
    mime: &str,
    base64: &str,
) -> (u16, Value) {
    let body = json!({ "name": name, "mime_type": mime, "content_base64": base64 });
    client.post(&format!("/v1/sessions/{session}/attachments"), body).await
}

async fn multipart(client: &Client, session: &str, name: &str, content: &[u8]) -> (u16, Value) {
    let mut body = format!(
        "--frontier\r\ncontent-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         content-type: text/plain\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--frontier--\r\n");
    let request = client.request(Method::POST, &format!("/v1/sessions/{session}/attachments"));
    let response = request
        .header("content-type", "multipart/form-data; boundary=frontier")
        .body(body)
        .send()
        .await
        .unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn a_picture_reaches_the_model() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let (status, body) = upload(&client, &id, "img_01.png", "image/png", "aGVsbG8=").await;
    assert_eq!(
        (status, &body),
        (200, &json!({ "ref": "attachments/img_01.png", "mime_type": "image/png" }))
    );
    let parts = json!([
        { "type": "text", "text": "what is it?" },
        { "type": "image", "ref": "attachments/img_01.png", "mime_type": "image/png" },
    ]);
    let body = json!({ "role": "user", "parts": parts, "auto_run": true });
    assert_eq!(client.post(&format!("/v1/sessions/{id}/messages"), body).await.0, 200);
    client.until_over(&id).await;
    let asked = world.model.calls()[0].to_string();
    assert!(asked.contains("data:image/png;base64,aGVsbG8="), "{asked}");
    let file = world.home.path().join("data/sessions").join(&id).join("attachments/img_01.png");
    assert_eq!(std::fs::read(file).unwrap(), b"hello");
}

#[tokio::test]
async fn models_without_image_input_refuse_pictures() {
    let world = World::start("inputs = [\"text\"]\n[senses]\nocr = \"off\"\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    upload(&client, &id, "a.png", "image/png", "aGVsbG8=").await;
    upload(&client, &id, "a.txt", "text/plain", "aGVsbG8=").await;
    let say = |kind: &str, file: &str| {
        let parts = json!([{ "type": kind, "ref": format!("attachments/{file}") }]);
        json!({ "role": "user", "parts": parts, "auto_run": true })
    };
    let path = format!("/v1/sessions/{id}/messages");
    let refused = client.post(&path, say("image", "a.png")).await;
    assert_eq!(refused, (400, json!({ "error": "model fake/fake does not take image parts" })));
    let missing = client.post(&path, say("image", "b.png")).await;
    assert_eq!(missing, (400, json!({ "error": "attachment not found: b.png" })));
    assert_eq!(client.post(&path, say("file", "a.txt")).await.0, 200);
    client.until_over(&id).await;
    assert!(world.model.calls()[0].to_string().contains("hello"));
}

#[tokio::test]
async fn models_without_image_input_can_have_text_in_pictures_read() {
    let world = World::start("inputs = [\"text\"]\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    upload(&client, &id, "a.png", "image/png", "aGVsbG8=").await;
    let script = json!([{ "tools": [{ "name": "look", "args": {} }] }, { "text": "so" }]);
    let parts = json!([
        { "type": "image", "ref": "attachments/a.png" },
        { "type": "text", "text": format!("{{{{script: {script}}}}}") },
    ]);
    let body = json!({ "role": "user", "parts": parts, "auto_run": true });
    assert_eq!(client.post(&format!("/v1/sessions/{id}/messages"), body).await.0, 200);
    client.until_over(&id).await;
    let calls = world.model.calls();
    let note = "[image a.png: this model takes no pictures; the tool `look` reads the text in it]";
    assert!(calls[0].to_string().contains(note), "{}", calls[0]);
    let missing = "a.png: the weights are missing: run `quintet models pull ocr`";
    assert!(calls[1].to_string().contains(missing), "{}", calls[1]);
}

#[tokio::test]
async fn names_are_made_safe_and_unique() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let named = async |name: &str| upload(&client, &id, name, "", "aGk=").await;
    assert_eq!(named("../../a.txt").await.1["ref"], "attachments/a.txt");
    assert_eq!(named("plain").await.1["ref"], "attachments/plain.bin");
    assert_eq!(named("plain").await.1["mime_type"], "application/octet-stream");
    let second = named("a.txt").await.1["ref"].as_str().unwrap().to_owned();
    assert!(second.starts_with("attachments/att_") && second.ends_with(".txt"), "{second}");
    for bad in ["", "..", "a/..", "a\0b.txt"] {
        assert_eq!(
            named(bad).await,
            (400, json!({ "error": "invalid attachment name" })),
            "{bad:?}"
        );
    }
    assert_eq!(upload(&client, "sess_none", "a", "", "aGk=").await.0, 404);
}

#[tokio::test]
async fn multipart_uploads_work_up_to_the_limit() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let (status, body) = multipart(&client, &id, "log.txt", b"line\n").await;
    assert_eq!(
        (status, &body),
        (200, &json!({ "ref": "attachments/log.txt", "mime_type": "text/plain" }))
    );
    let largest = vec![b'x'; 25 * 1024 * 1024];
    assert_eq!(multipart(&client, &id, "big.txt", &largest).await.0, 200);
    let larger = vec![b'x'; 25 * 1024 * 1024 + 1];
    let refused = multipart(&client, &id, "bigger.txt", &larger).await;
    assert_eq!(refused, (413, json!({ "error": "attachment is larger than 25 MiB" })));
}
