//! Identities of users, and their settings.

use serde_json::{Value, json};

use super::super::{AUTH, Guest};
use super::handshake;
use crate::computer::{Computer, kinds, text};
use crate::daemon::{World, quintet};

#[tokio::test]
async fn a_token_says_who_one_is_whatever_one_claims() {
    let world = World::start(AUTH).await;
    let (ann, bob) = (Guest::register(&world).await, Guest::register(&world).await);
    let mut nobody = Computer::reach(world.windie(), None, &handshake("ann")).await;
    assert_eq!(nobody.close_code().await, 1008);
    let mut wrong = Computer::reach(world.windie(), Some("wnd_install_x"), &handshake("ann")).await;
    assert_eq!(wrong.close_code().await, 1008);
    let token = ann.token.as_deref();
    let mut hers = Computer::reach(world.windie(), token, &handshake("somebody")).await;
    hers.until("remote-tool-catalog").await;
    let told = hers.turn("c", json!([{ "text": "for Ann" }])).await;
    assert_eq!(told[0]["user_id"], ann.user.as_str());
    let session = told[0]["session_id"].as_str().unwrap().to_owned();
    // The same name is another conversation to somebody else, and hers cannot be named.
    let mut his =
        Computer::reach(world.windie(), bob.token.as_deref(), &handshake(&ann.user)).await;
    his.until("remote-tool-catalog").await;
    let told = his.turn("c", json!([{ "text": "for Bob" }])).await;
    assert_ne!(told[0]["session_id"], session.as_str());
    let told = his.turn(&session, json!([{ "text": "for Bob" }])).await;
    assert_ne!(told[0]["session_id"], session.as_str());
    let begun = world.client().create(world.workspace()).await;
    let told = his.turn(&begun, json!([{ "text": "for Bob" }])).await;
    assert_ne!(told[0]["session_id"], begun.as_str());
    // Neither are settings.
    hers.send(
        "update-settings",
        json!({ "interaction_mode": "chat",
        "provider_api_keys": { "openai": { "enabled": true, "api_key": "sk-anns" } } }),
    )
    .await;
    hers.until("settings-updated").await;
    his.send("load-settings", json!({})).await;
    let config = his.until("settings-loaded").await.pop().unwrap();
    assert_eq!(config["payload"]["config"]["interaction_mode"], "agent");
    hers.send("load-settings", json!({})).await;
    let config = hers.until("settings-loaded").await.pop().unwrap();
    let key = &config["payload"]["config"]["provider_api_keys"]["openai"];
    assert_eq!(*key, json!({ "enabled": true, "api_key": "" }));
}

#[tokio::test]
async fn a_token_that_is_taken_away_ends_the_connection() {
    let world = World::start(AUTH).await;
    let ann = Guest::register(&world).await;
    let token = ann.token.as_deref();
    let mut computer = Computer::reach(world.windie(), token, &handshake("ann")).await;
    computer.until("remote-tool-catalog").await;
    computer.turn("c", json!([{ "text": "hi" }])).await;
    let file = world.home.path().join("quintet.toml");
    let arguments = ["installs", "revoke", &ann.install, "--config", file.to_str().unwrap()];
    let revoked = quintet(&arguments).output().unwrap().status;
    assert!(revoked.success());
    computer.query("c", json!([{ "text": "never" }])).await;
    assert_eq!(computer.close_code().await, 1008);
}

#[tokio::test]
async fn what_a_user_sets_outlives_the_daemon() {
    let mut world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let set = json!({ "speech_mode_enabled": true, "selected_model_id": "other", "model_provider": "fake" });
    computer.send("update-settings", set).await;
    computer.until("settings-updated").await;
    world.kill();
    world.restart();
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.send("load-settings", json!({})).await;
    let config = computer.until("settings-loaded").await.pop().unwrap();
    assert_eq!(config["payload"]["config"]["speech_mode_enabled"], true);
    computer.turn("c", json!([{ "text": "hi" }])).await;
    assert_eq!(world.model.calls()[0]["model"], "other");
    // A model of somebody who is not configured makes way for the usual one.
    computer.send("update-settings", json!({ "model_provider": "nobody" })).await;
    computer.until("settings-updated").await;
    assert_eq!(text(&computer.turn("c", json!([{ "text": "still" }])).await), "still");
    computer.send("update-settings", json!({ "interaction_mode": "dance" })).await;
    let error = computer.until("error").await.pop().unwrap();
    let message = error["payload"]["message"].as_str().unwrap();
    assert!(message.starts_with("Invalid settings: Invalid "), "{message}");
}

#[tokio::test]
async fn models_are_listed_and_the_user_is_greeted() {
    let world = World::start("").await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let id = computer.send("list-models", json!({})).await;
    let listed = computer.until("models-listed").await.pop().unwrap();
    assert_eq!(listed["id"], id.as_str());
    for side in ["local", "online", "vision"] {
        assert!(listed["payload"][side].is_array(), "{listed}");
    }
    computer.send("wakeword-detected", json!({})).await;
    let told = computer.until("wakeword-greeting").await;
    assert_eq!(kinds(&told), ["wakeword-activated", "wakeword-greeting"]);
    assert_eq!(told[0]["payload"]["greeting"], told[1]["payload"]["text"]);
}
