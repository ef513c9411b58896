//! Embeddings, OCR and vision as clients meet them, with the real small models of this machine and a
//! vision model that answers as it is told.

use reqwest::Method;
use serde_json::{Value, json};

use super::{AUTH, Guest, answer, detail};
use crate::computer::{Computer, first, kinds, text};
use crate::daemon::World;

/// A screenshot of an editor's settings, with the text "Project settings" on it.
const SCREEN: &[u8] = include_bytes!("../../../../senses/tests/it/screens/light.png");

/// A picture that was handed in.
async fn hand_in(guest: &Guest, content: &[u8]) -> Value {
    let (status, answer) = guest.hand_in(Some("image/png"), content).await;
    assert_eq!(status, 200, "{answer}");
    json!({ "artifact_id": answer["artifact_id"] })
}

/// True if a point is within some pixels of another.
fn is_near(point: &Value, (x, y): (i64, i64)) -> bool {
    let side = |name: &str| point[name].as_i64().unwrap_or(i64::MIN / 2);
    (side("x") - x).abs() <= 8 && (side("y") - y).abs() <= 8
}

#[tokio::test]
async fn text_is_found_on_a_screenshot_and_drawn_on_it() {
    let world = World::start_with_weights(AUTH).await;
    let (guest, other) = (Guest::register(&world).await, Guest::register(&world).await);
    let image = hand_in(&guest, SCREEN).await;
    let ask = async |path: &str, more: Value| {
        let mut body = json!({ "image": image });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        guest.post(&format!("/api/sdk/{path}"), body).await
    };
    let (status, all) = ask("ocr/run", json!({})).await;
    assert_eq!((status, &all["image"]["source_id"]), (200, &image["artifact_id"]), "{all}");
    assert!(all["results"].as_array().unwrap().len() > 10, "{all}");
    let (status, found) = ask("ocr/resolve-text", json!({ "text": "project settings" })).await;
    assert_eq!(status, 200, "{found}");
    assert!(is_near(&found["match"]["center"], (368, 77)), "{found}");
    let candidate = json!({ "candidate_id": found["match"]["candidate_id"] });
    let (status, same) = ask("ocr/resolve-candidate", candidate.clone()).await;
    assert_eq!((status, &same["match"]["center"]), (200, &found["match"]["center"]), "{same}");
    let (status, missing) = ask("ocr/resolve-text", json!({ "text": "Unicorns" })).await;
    assert_eq!(status, 404);
    let payload = &missing["detail"]["resolver_payload"];
    assert_eq!(payload["candidates"].as_array().unwrap().len(), 8, "{missing}");

    let (status, overlay) = ask("ocr/overlay", candidate).await;
    assert_eq!((status, &overlay["annotation_count"]), (200, &json!(1)), "{overlay}");
    let path = format!("/api/artifacts/{}", overlay["artifact_id"].as_str().unwrap());
    let picture = guest.request(Method::GET, &path).send().await.unwrap();
    assert_eq!(
        (picture.status().as_u16(), &picture.headers()["content-type"]),
        (200, &"image/png".parse().unwrap())
    );
    assert_eq!(other.get(&path).await.0, 404);
    let theirs = other.post("/api/sdk/ocr/run", json!({ "image": image })).await;
    assert_eq!(theirs, (404, detail("Artifact not found")));

    // Without a vision model the text has to do, and the answer says so.
    let (status, described) = ask("vision/describe", json!({})).await;
    assert_eq!((status, &described["model"]), (200, &json!("ocr")), "{described}");
    assert!(described["description"].as_str().unwrap().contains("\"Project settings\""));
    let quoted = json!({ "description": "the heading \"Project settings\"" });
    let (status, located) = ask("vision/locate", quoted).await;
    assert_eq!(status, 200, "{located}");
    assert!(is_near(&located["match"]["center"], (368, 77)), "{located}");
    let (status, refused) = ask("vision/locate", json!({ "description": "a red bin" })).await;
    assert_eq!(status, 422);
    assert!(refused["detail"].as_str().unwrap().contains("`senses.vision`"), "{refused}");
}

#[tokio::test]
async fn texts_become_vectors() {
    let config = format!("{AUTH}embedding_service_key = \"e-key\"\n");
    let world = World::start_with_weights(&config).await;
    let guest = Guest::register(&world).await;
    let (status, one) = guest.post("/api/embeddings/", json!({ "text": "a cat" })).await;
    assert_eq!(status, 200, "{one}");
    let length = |vector: &Value| vector.as_array().map_or(0, Vec::len);
    assert_eq!((length(&one["embedding"]), &one["dimension"]), (384, &json!(384)));
    let space = "local-sentence-transformer:sentence-transformers/all-MiniLM-L6-v2:384";
    assert_eq!(one["embedding_space_version"], space);
    let (status, health) = guest.get("/api/embeddings/health").await;
    assert_eq!((status, &health["status"]), (200, &json!("healthy")));
    let request = guest.request(Method::POST, "/embed").header("x-windie-embedding-key", "e-key");
    let body = json!({ "texts": ["a cat", "", "NUL \0 and \u{1f600}"] });
    let (status, many) = answer(request.body(body.to_string()).send().await.unwrap()).await;
    assert_eq!(status, 200, "{many}");
    assert_eq!(many["embeddings"].as_array().unwrap().len(), 3);
    assert_eq!(many["embeddings"][0], one["embedding"]);
    let space = "embedding-service:sentence-transformers/all-MiniLM-L6-v2:384";
    assert_eq!(many["embedding_space_version"], space);
    assert!(many["service_time_ms"].as_f64().unwrap() >= 0.0);
}

/// A description that has the model answer this.
fn scripted(answer: &str) -> String {
    format!("{{{{script: {}}}}}", json!([{ "text": answer }]))
}

#[tokio::test]
async fn a_vision_model_of_a_provider_looks_at_pictures() {
    let world = World::start("[senses]\nvision = \"fake/fake\"\n").await;
    let guest = Guest::stranger(&world);
    let image = hand_in(&guest, SCREEN).await;
    let locate = async |answer: &str| {
        let body = json!({ "image": image, "description": scripted(answer) });
        guest.post("/api/sdk/vision/locate", body).await
    };
    let (status, found) = locate(r#"{"points":[{"x":0.5,"y":0.25,"label":"a bin"}]}"#).await;
    assert_eq!(status, 200, "{found}");
    let (width, height) =
        (found["image"]["width"].as_i64().unwrap(), found["image"]["height"].as_i64().unwrap());
    assert!(is_near(&found["match"]["center"], (width / 2, height / 4)), "{found}");
    assert_eq!((&found["model"], &found["match"]["label"]), (&json!("fake/fake"), &json!("a bin")));
    assert!(world.model.calls()[0].to_string().contains("data:image/png;base64,"));
    let (status, nothing) = locate(r#"{"points":[]}"#).await;
    assert_eq!(status, 404, "{nothing}");
    let (status, nonsense) = locate("What a lovely picture.").await;
    let why = "Vision service failed: the model gave no coordinates: \"What a lovely picture.\"";
    assert_eq!((status, nonsense), (502, detail(why)));
    let (status, outside) = locate(r#"{"points":[{"x":99999,"y":1}]}"#).await;
    assert_eq!(status, 502, "{outside}");
    let body = json!({ "image": image, "region": { "x": 0, "y": 0, "width": 50, "height": 40 } });
    let (status, described) = guest.post("/api/sdk/vision/describe", body).await;
    assert_eq!((status, &described["model"]), (200, &json!("fake/fake")), "{described}");
    assert_eq!(described["region"], json!({ "x": 0, "y": 0, "width": 50, "height": 40 }));
    assert!(described["description"].as_str().unwrap().contains("Describe this picture."));

    let blind = World::start("inputs = [\"text\"]\n[senses]\nvision = \"fake/fake\"\n").await;
    let body = json!({ "image": { "image_base64": "eA==" } });
    let (status, said) = Guest::stranger(&blind).post("/api/sdk/vision/describe", body).await;
    let why = "Vision service failed: senses.vision = fake/fake: the model takes no pictures";
    assert_eq!((status, said), (502, detail(why)));
}

/// A click at a place that is found.
fn click(how: Value) -> Value {
    let mut args = json!({ "action": "click", "explanation": "x" });
    args.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
    json!({ "tools": [{ "name": "mouse_control", "args": args }] })
}

/// Asks with a screenshot.
async fn query(computer: &mut Computer, image: &Value, script: Value) {
    let text = format!("{{{{script: {script}}}}}");
    let shot = image["artifact_id"].clone();
    let payload = json!({ "text": text, "conversation_ref": "c", "screenshot_ref": shot });
    computer.send("query", payload).await;
}

#[tokio::test]
async fn places_are_found_by_text_before_the_client_is_asked_to_click() {
    let world = World::start_with_weights("").await;
    let image = hand_in(&Guest::stranger(&world), SCREEN).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let by = |text: &str| json!({ "find_coordinates_by": "ocr", "ocr_text": text });
    let script = json!([click(by("Unicorns")), click(by("Project settings")), { "text": "so" }]);
    query(&mut computer, &image, script).await;
    let told = computer.until("tool-output").await;
    // The first click has no place: the client is only shown it, and the model reads why.
    let shown = &first(&told, "tool-call")["payload"];
    assert_eq!(shown["metadata"]["skip_local_execution"], true, "{shown}");
    let output = &first(&told, "tool-output")["payload"];
    assert_eq!(output["success"], false, "{output}");
    let told = computer.until("tool-call").await;
    let call = &first(&told, "tool-call")["payload"];
    assert!(is_near(&call["parameters"], (368, 77)), "{call}");
    assert!(call["parameters"].get("ocr_text").is_none(), "{call}");
    assert!(call["parameters"].get("find_coordinates_by").is_none(), "{call}");
    let result = json!({ "request_id": call["request_id"], "success": true, "data": { "output": "clicked" } });
    computer.send("tool-result", result).await;
    assert_eq!(text(&computer.until("streaming-complete").await), "so");
    let asked = world.model.calls();
    let read = asked[1]["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(read.contains("Could not find text 'Unicorns' on screen"), "{read}");
    assert!(read.contains("resolver_payload") && read.contains("candidate_id"), "{read}");
    // The model is offered only what there is.
    let tools = asked[0]["tools"].to_string();
    assert!(tools.contains(r#""enum":["manual","ocr"]"#), "{tools}");
}

#[tokio::test]
async fn places_are_found_by_sight_and_several_calls_stay_together() {
    let world = World::start("[senses]\nvision = \"fake/fake\"\nocr = \"off\"\n").await;
    let image = hand_in(&Guest::stranger(&world), SCREEN).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    // The model says again what it is asked, so the description is the answer.
    let seen =
        |answer: &str| json!({ "find_coordinates_by": "prediction", "source_description": answer });
    let here = click(seen("(7, 9)"))["tools"][0].clone();
    let nowhere = click(seen("a bin that is not found"))["tools"][0].clone();
    let wait = json!({ "name": "wait", "args": { "seconds": 1, "explanation": "x" } });
    let script = json!([{ "tools": [wait, here, nowhere, wait] }, { "text": "so" }]);
    query(&mut computer, &image, script).await;
    let told = computer.until("tool-bundle").await;
    let bundle = &first(&told, "tool-bundle")["payload"];
    let tools = bundle["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 2, "{bundle}");
    assert_eq!(tools[0]["name"], "wait");
    assert_eq!((&tools[1]["args"]["x"], &tools[1]["args"]["y"]), (&json!(7), &json!(9)));
    let steps = json!([
        { "tool": "wait", "status": "ok", "output": "waited" },
        { "tool": "mouse_control", "status": "ok", "output": "clicked" },
    ]);
    let result =
        json!({ "bundle_id": bundle["bundle_id"], "status": "success", "step_results": steps });
    computer.send("tool-bundle-result", result).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(text(&told), "so");
    assert!(kinds(&told).contains(&"tool-output"));
    let asked = world.model.calls().pop().unwrap()["messages"].to_string();
    assert!(asked.contains("Vision model could not identify"), "{asked}");
    assert!(asked.contains("not run: the place of an earlier call was not found"), "{asked}");
    assert!(asked.contains("clicked"), "{asked}");
}

#[tokio::test]
async fn without_a_screenshot_there_is_nothing_to_find_places_on() {
    let world = World::start("[senses]\nvision = \"fake/fake\"\n").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let seen = json!({ "find_coordinates_by": "prediction", "source_description": "a bin" });
    let told = computer.turn("c", json!([click(seen), { "text": "so" }])).await;
    assert_eq!(text(&told), "so");
    let asked = world.model.calls()[1]["messages"].to_string();
    assert!(
        asked.contains("there is no screenshot yet: take one with `screenshot` first"),
        "{asked}"
    );
}

#[tokio::test]
async fn a_model_that_takes_no_pictures_reads_the_text_on_a_screenshot() {
    let world = World::start_with_weights("inputs = [\"text\"]\n").await;
    let image = hand_in(&Guest::stranger(&world), SCREEN).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let script = json!([{ "tools": [{ "name": "look", "args": {} }] }, { "text": "so" }]);
    query(&mut computer, &image, script).await;
    let told = computer.until("streaming-complete").await;
    assert_eq!(text(&told), "so");
    let calls = world.model.calls();
    assert!(calls[0].to_string().contains("the tool `look` reads the text in it"), "{}", calls[0]);
    assert!(calls[1].to_string().contains("Project settings"), "{}", calls[1]);
}
