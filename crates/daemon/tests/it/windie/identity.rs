//! Installs: how they come by a token, what it opens, and how it is taken away.

use reqwest::Method;
use serde_json::json;

use super::{AUTH, Guest, answer, detail};
use crate::daemon::{World, quintet};

#[tokio::test]
async fn a_token_says_who_one_is_and_outlives_the_daemon() {
    let mut world = World::start(AUTH).await;
    let one = Guest::register(&world).await;
    let two = Guest::register(&world).await;
    assert!(one.user != two.user && one.install != two.install);
    let me = json!({ "success": true, "user_id": one.user, "install_id": one.install });
    assert_eq!(one.get("/api/install/me").await, (200, me.clone()));
    let token = one.token.clone().unwrap();
    let database = world.home.path().join("data");
    world.terminate();
    for file in std::fs::read_dir(&database).unwrap().flatten() {
        let bytes = std::fs::read(file.path()).unwrap_or_default();
        let found = bytes.windows(token.len()).any(|window| window == token.as_bytes());
        assert!(!found, "the token is in {}", file.path().display());
    }
    world.restart();
    assert_eq!(one.again(&world).get("/api/install/me").await, (200, me));
}

#[tokio::test]
async fn without_a_token_nothing_below_api_is_answered() {
    let world = World::start(AUTH).await;
    let mut stranger = Guest::stranger(&world);
    for path in ["/api/install/me", "/api/artifacts/x.png", "/api/nothing", "/api"] {
        let missing = (401, detail("Missing install bearer token"));
        assert_eq!(stranger.get(path).await, missing, "{path}");
    }
    stranger.token = Some("wnd_install_made-up".into());
    let invalid = (401, detail("Invalid install bearer token"));
    assert_eq!(stranger.get("/api/install/me").await, invalid);
    let basic = stranger.client.request(Method::GET, "/api/install/me");
    let basic = basic.header("authorization", "Basic eDp5").send().await.unwrap();
    assert_eq!(answer(basic).await, (401, detail("Missing install bearer token")));
    let known = Guest::register(&world).await;
    assert_eq!(known.get("/api/nothing").await, (404, detail("Not Found")));
    let request = known.client.request(Method::GET, "/api/install/me");
    let token = known.token.as_deref().unwrap();
    let lower = request.header("authorization", format!("bearer {token}")).send().await.unwrap();
    assert_eq!(lower.status(), 200);
}

#[tokio::test]
async fn where_nobody_is_asked_a_token_still_says_whose_it_is() {
    let world = World::start("").await;
    let stranger = Guest::stranger(&world);
    assert_eq!(stranger.get("/api/nothing").await, (404, detail("Not Found")));
    let missing = (401, detail("Missing install bearer token"));
    assert_eq!(stranger.get("/api/install/me").await, missing);
    let known = Guest::register(&world).await;
    assert_eq!(known.get("/api/install/me").await.1["user_id"], json!(known.user));
}

#[tokio::test]
async fn a_token_that_is_taken_away_opens_nothing_any_more() {
    let world = World::start(AUTH).await;
    let (one, two) = (Guest::register(&world).await, Guest::register(&world).await);
    let file = world.home.path().join("quintet.toml");
    let run = |arguments: &[&str]| {
        let all = [&["installs"], arguments, &["--config", file.to_str().unwrap()]].concat();
        let output = quintet(&all).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (String::from_utf8(said).unwrap(), output.status.success())
    };
    for arguments in [&[][..], &["list"]] {
        let (said, well) = run(arguments);
        assert!(well && said.lines().count() == 2, "{said}");
        assert!(said.contains(&one.install) && said.contains(&two.user), "{said}");
        assert!(said.contains("Linux") && !said.contains("wnd_install_"), "{said}");
    }
    let (said, well) = run(&["revoke", &one.install]);
    assert!(well && said.contains("is revoked"), "{said}");
    let invalid = (401, detail("Invalid install bearer token"));
    assert_eq!(one.get("/api/install/me").await, invalid);
    assert_eq!(two.get("/api/install/me").await.0, 200);
    let (said, well) = run(&["revoke", &one.install]);
    assert!(!well && said.contains("there is no install"), "{said}");
}

#[tokio::test]
async fn registration_may_need_a_secret_or_be_off() {
    let world = World::start(&format!("{AUTH}registration_secret = \"s3same\"\n")).await;
    let stranger = Guest::stranger(&world);
    let refused = (403, detail("Install registration secret is required"));
    assert_eq!(stranger.post("/api/install/register", json!({})).await, refused);
    let with = async |secret: &str| {
        let request = stranger.request(Method::POST, "/api/install/register");
        let request = request.header("X-Windie-Install-Registration-Secret", secret);
        answer(request.body("{}").send().await.unwrap()).await
    };
    assert_eq!(with("s3sam").await, refused);
    assert_eq!(with("s3same").await.0, 200);

    let world = World::start(&format!("{AUTH}registration = false\n")).await;
    let refused = (403, detail("Install registration is disabled"));
    assert_eq!(Guest::stranger(&world).post("/api/install/register", json!({})).await, refused);
}

#[tokio::test]
async fn what_registers_is_read_strictly() {
    let world = World::start(AUTH).await;
    let stranger = Guest::stranger(&world);
    let check = async |body: &str, kind: &str, place: serde_json::Value, message: &str| {
        let request = stranger.request(Method::POST, "/api/install/register");
        let (status, said) = answer(request.body(body.to_owned()).send().await.unwrap()).await;
        let fault = json!([{ "type": kind, "loc": place, "msg": message }]);
        assert_eq!((status, said), (422, json!({ "detail": fault })), "{body}");
    };
    check("", "missing", json!(["body"]), "Field required").await;
    check("{", "json_invalid", json!(["body", 1]), "JSON decode error").await;
    let object = "Input should be a valid dictionary or object to extract fields from";
    check("[]", "model_attributes_type", json!(["body"]), object).await;
    let place = json!(["body", "user_id"]);
    check("{\"user_id\":\"x\"}", "extra_forbidden", place, "Extra inputs are not permitted").await;
    let place = json!(["body", "operating_system"]);
    check("{\"operating_system\":1}", "string_type", place, "Input should be a valid string").await;
    let long = json!({ "operating_system": "x".repeat(129) }).to_string();
    let place = json!(["body", "operating_system"]);
    check(&long, "string_too_long", place, "String should have at most 128 characters").await;
    assert_eq!(
        stranger.post("/api/install/register", json!({ "operating_system": null })).await.0,
        200
    );
    let wrong = stranger.request(Method::GET, "/api/install/register").send().await.unwrap();
    assert_eq!(
        (wrong.status().as_u16(), &wrong.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
    assert_eq!(answer(wrong).await.1, detail("Method Not Allowed"));
}

#[tokio::test]
async fn pages_from_elsewhere_are_turned_away() {
    let world = World::start("").await;
    let stranger = Guest::stranger(&world);
    for (name, value) in [("origin", "https://evil.example"), ("host", "evil.example")] {
        let request = stranger.request(Method::POST, "/api/install/register").header(name, value);
        assert_eq!(request.body("{}").send().await.unwrap().status(), 403, "{name}");
    }
}
