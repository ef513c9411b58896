//! What this daemon cannot do: it says so clearly, to those who may ask and ask well.

use futures_util::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;

use super::{AUTH, Guest, answer, detail};
use crate::daemon::World;

const NO_EMBEDDINGS: &str = "Embedding service not available: the weights are missing: run `quintet \
                             models pull embeddings`";

/// Sends a body that something is wrong with, and says what.
async fn wrong(guest: &Guest, path: &str, body: Value) -> String {
    let (status, said) = guest.post(path, body.clone()).await;
    assert_eq!(status, 422, "{path} {body} {said}");
    let faults = said["detail"].as_array().unwrap().iter();
    let shown = faults.map(|fault| {
        let place: Vec<String> = fault["loc"].as_array().unwrap()[1..].iter().map(plain).collect();
        format!("{}: {}", place.join("."), fault["msg"].as_str().unwrap())
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

#[tokio::test]
async fn pictures_are_not_understood_without_weights() {
    let world = World::start(AUTH).await;
    let guest = Guest::register(&world).await;
    let image = json!({ "artifact_id": "shot.png" });
    for (path, more) in [
        ("ocr/run", json!({})),
        ("ocr/inspect", json!({ "text": "x", "threshold": 0.8, "include_overlay": true })),
        ("ocr/find-text", json!({ "text": "x", "max_results": 10 })),
        ("ocr/find-text-candidates", json!({ "text": "x" })),
        ("ocr/resolve-text", json!({ "text": "x", "threshold": 1 })),
        ("ocr/resolve-candidate", json!({ "candidate_id": "ocr_deadbeef1234" })),
        ("ocr/overlay", json!({ "candidate_id": "x" })),
        ("vision/locate", json!({ "description": "a button" })),
        ("vision/locate-all", json!({ "description": "a button", "max_results": 25 })),
        ("vision/describe", json!({ "region": { "x": 0, "y": 0, "width": 1, "height": 1 } })),
    ] {
        let mut body = json!({ "image": image });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let service = if path.starts_with("ocr") { "OCR" } else { "Vision" };
        let missing = "the weights are missing: run `quintet models pull ocr`";
        let sorry = (503, detail(&format!("{service} service not available: {missing}")));
        let path = format!("/api/sdk/{path}");
        assert_eq!(guest.post(&path, body.clone()).await, sorry, "{path}");
        let stranger = Guest::stranger(&world).post(&path, body).await;
        assert_eq!(stranger, (401, detail("Missing install bearer token")), "{path}");
        assert_eq!(
            wrong(&guest, &path, json!({})).await.split(';').next().unwrap(),
            "image: Field required"
        );
    }
    assert_eq!(guest.post("/api/sdk/ocr/nothing", json!({})).await, (404, detail("Not Found")));
    let off = World::start("[senses]\nocr = \"off\"\nembeddings = \"off\"\n").await;
    let guest = Guest::stranger(&off);
    let sorry = (503, detail("OCR service not available: not configured: set `senses.ocr`"));
    assert_eq!(guest.post("/api/sdk/ocr/run", json!({ "image": image })).await, sorry);
    let sorry = (503, detail("Vision service not available: not configured: set `senses.vision`"));
    assert_eq!(guest.post("/api/sdk/vision/describe", json!({ "image": image })).await, sorry);
    let sorry =
        (503, detail("Embedding service not available: not configured: set `senses.embeddings`"));
    assert_eq!(guest.get("/api/embeddings/health").await, sorry);
}

#[tokio::test]
async fn what_is_asked_of_pictures_has_its_limits() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let one = "image: Value error, exactly one of artifact_id or image_base64 is required";
    for image in [json!({}), json!({ "artifact_id": "x.png", "image_base64": "eA==" })] {
        assert_eq!(wrong(&guest, "/api/sdk/ocr/run", json!({ "image": image })).await, one);
    }
    let check = async |path: &str, more: Value, then: &str| {
        let mut body = json!({ "image": { "image_base64": "eA==" } });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(wrong(&guest, &format!("/api/sdk/{path}"), body).await, then);
    };
    let find = "ocr/find-text";
    check(find, json!({ "text": "" }), "text: String should have at least 1 character").await;
    let long = json!({ "text": "x".repeat(2001) });
    check(find, long, "text: String should have at most 2000 characters").await;
    let high = "threshold: Input should be less than or equal to 1";
    check(find, json!({ "text": "x", "threshold": 1.1 }), high).await;
    let none = "max_results: Input should be greater than or equal to 1";
    check(find, json!({ "text": "x", "max_results": 0 }), none).await;
    let many = "max_results: Input should be less than or equal to 100";
    check(find, json!({ "text": "x", "max_results": 101 }), many).await;
    let many = "max_results: Input should be less than or equal to 25";
    check("vision/locate-all", json!({ "description": "x", "max_results": 26 }), many).await;
    let both = json!({ "text": "x", "candidate_id": "y" });
    let why = ": Value error, at most one of text or candidate_id may be given";
    check("ocr/overlay", both, why).await;
    let long = json!({ "candidate_id": "x".repeat(129) });
    let why = "candidate_id: String should have at most 128 characters";
    check("ocr/resolve-candidate", long, why).await;
    let region = json!({ "region": { "x": -1, "y": 0, "width": 0, "height": 1 } });
    let why = "region.x: Input should be greater than or equal to 0; \
               region.width: Input should be greater than or equal to 1";
    check("vision/describe", region, why).await;
    let points =
        json!({ "points": [{ "x": 1, "y": 2, "color": "red", "label": "x".repeat(201) }] });
    let why = "points.0.label: String should have at most 200 characters; \
               points.0.color: Value error, color must be like #1677ff";
    check("vision/overlay", points.clone(), why).await;
    let why = "result.points.0.label: String should have at most 200 characters; \
               result.points.0.color: Value error, color must be like #1677ff";
    check("vision/overlay", json!({ "result": points }), why).await;
}

#[tokio::test]
async fn there_are_no_embeddings_without_weights() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let sorry = (503, detail(NO_EMBEDDINGS));
    assert_eq!(guest.post("/api/embeddings/", json!({ "text": "x" })).await, sorry);
    assert_eq!(guest.get("/api/embeddings/health").await, sorry);
    let said = wrong(&guest, "/api/embeddings/", json!({ "text": "x".repeat(8193) })).await;
    assert_eq!(said, "text: String should have at most 8192 characters");
    let named = json!({ "text": "x", "model_name": "x".repeat(129) });
    let said = wrong(&guest, "/api/embeddings/", named).await;
    assert_eq!(said, "model_name: String should have at most 128 characters");
    let shut = (503, detail("Embedding service API key is not configured"));
    assert_eq!(guest.post("/embed", json!({ "texts": ["x"] })).await, shut);
}

#[tokio::test]
async fn keys_open_what_is_for_other_services() {
    let keys = format!("{AUTH}embedding_service_key = \"e-key\"\n");
    let world = World::start(&keys).await;
    let guest = Guest::register(&world).await;
    let with = async |path: &str, header: &'static str, key: &str, body: Value| {
        let request = guest.request(Method::POST, path).header(header, key);
        answer(request.body(body.to_string()).send().await.unwrap()).await
    };
    let embed = async |key: &str, texts: Value| {
        with("/embed", "x-windie-embedding-key", key, json!({ "texts": texts })).await
    };
    let invalid = (401, detail("Invalid embedding service API key"));
    assert_eq!(embed("e-ke", json!(["x"])).await, invalid);
    let sorry = (503, detail(NO_EMBEDDINGS));
    assert_eq!(embed("e-key", json!(["x"])).await, sorry);
    assert_eq!(embed("e-key", json!(vec!["x".repeat(256); 256])).await, sorry);
    for texts in [json!([]), json!(vec!["x"; 257]), json!(["x".repeat(8193)])] {
        assert_eq!(embed("e-key", texts).await.0, 422);
    }
    let (status, said) = embed("e-key", json!(vec!["x".repeat(257); 256])).await;
    assert_eq!(status, 422);
    let why = "Value error, the texts may have at most 65536 characters together";
    assert_eq!(said["detail"][0]["msg"], why);
}

#[tokio::test]
async fn missing_weights_of_transcription_are_named() {
    let heard = async |world: &World| {
        let url = format!("{}/ws/transcription", world.windie().replace("http://", "ws://"));
        let (socket, _) = connect_async(url).await.unwrap();
        let messages: Vec<Message> = socket.filter_map(async |read| read.ok()).collect().await;
        messages
    };
    let world = World::start("").await;
    let messages = heard(&world).await;
    let read =
        |message: &Message| serde_json::from_str::<Value>(message.to_text().unwrap()).unwrap();
    let status = read(&messages[0]);
    assert_eq!(
        (&status["type"], status["client_id"].as_str().map(str::len)),
        (&json!("status"), Some(32))
    );
    let missing = "the weights are missing: run `quintet models pull transcription`";
    assert_eq!(read(&messages[1]), json!({ "type": "error", "message": missing }));
    assert!(messages[2].is_close());
    assert_eq!(Guest::stranger(&world).get("/ws/transcription").await, (404, detail("Not Found")));

    let world = World::start(AUTH).await;
    let messages = heard(&world).await;
    let [Message::Close(Some(frame))] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!(u16::from(frame.code), 1008);
}
