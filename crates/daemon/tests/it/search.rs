//! Searching the web: by the tool, and by a model's provider.

use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};

use crate::client::{Client, Event, text};
use crate::daemon::World;

const KEY: &str = "hush-0815-this-is-the-key";
const FOUND: &str = r#"{"query":"q","results":[{"url":"https://whales.example/","title":"Whales",
    "content":"They are back."}]}"#;
const QUIET: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

/// What a tool gave, or why it did not.
fn output(events: &[Event]) -> String {
    let done = events.iter().find(|event| event.kind() == "tool_call_completed").unwrap();
    done.json["data"].to_string()
}

#[tokio::test]
async fn a_model_searches_with_the_engine_that_is_set_up() {
    let engine = ReplayServer::start(CannedReply::json(200, FOUND)).await.unwrap();
    let config = format!(
        "{QUIET}[search]\napi = \"searxng\"\nbase_url = {:?}\napi_key = \"{KEY}\"\n",
        engine.url()
    );
    let mut world = World::start(&config).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    // The model gives away a key that it should not know.
    let args = json!({ "query": format!("whales {KEY}") });
    let call = json!({ "tools": [{ "name": "web_search", "args": args }] });
    client.say(&id, json!([call, { "text": "found" }])).await;
    let events = client.until_over(&id).await;
    assert!(output(&events).contains("1. Whales"), "{}", output(&events));
    assert_eq!(text(&events), "found");
    let asked = engine.asked();
    assert!(asked[0].path.starts_with("/search?q=whales+hush"), "{}", asked[0].path);
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {KEY}"));
    assert!(world.terminate().success());
    let audit = std::fs::read_to_string(world.home.path().join("data/audit.jsonl")).unwrap();
    assert!(audit.contains("web_search") && !audit.contains(KEY), "{audit}");
}

/// A session with a model whose provider searches, at this server.
async fn ask(world: &World, client: &Client) -> String {
    let model = "maker/claude-sonnet-4-5";
    let body = json!({ "workspace_path": world.workspace(), "model": model });
    let (status, session) = client.post("/v1/sessions", body).await;
    assert_eq!(status, 200, "{session}");
    session["session_id"].as_str().unwrap().to_owned()
}

async fn say(client: &Client, id: &str) -> Vec<Event> {
    let part = json!({ "type": "text", "text": "how is the weather?" });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true });
    let (status, told) = client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    assert_eq!(status, 200, "{told}");
    client.until_over(id).await
}

async fn maker() -> ReplayServer {
    let stream = include_bytes!("../../../providers/tests/golden/anthropic/web_search.sse");
    ReplayServer::start(CannedReply::stream(stream.as_slice())).await.unwrap()
}

/// What the model was asked, without questions for a list of models.
fn questions(server: &ReplayServer) -> Vec<Value> {
    let asked = server.asked().into_iter().filter(|asked| asked.method == "POST");
    asked.map(|asked| asked.body).collect()
}

fn has_search(body: &Value) -> bool {
    let tools = body["tools"].as_array().unwrap();
    tools.iter().any(|tool| tool["type"] == "web_search_20250305")
}

#[tokio::test]
async fn a_provider_searches_if_it_may_and_is_told_again_what_it_found() {
    let server = maker().await;
    let config = format!(
        "{QUIET}[providers.maker]\nvendor = \"anthropic\"\nbase_url = \"{}/v1\"\napi_key = \"{KEY}\"\n\
         [search]\nnative = true\n",
        server.url()
    );
    let world = World::start(&config).await;
    let client = world.client();
    let id = ask(&world, &client).await;
    assert_eq!(text(&say(&client, &id).await), "I'll check.It is sunny. Go out.");
    say(&client, &id).await;
    let asked = questions(&server);
    assert!(asked.len() == 2 && asked.iter().all(has_search));
    let before = asked[1]["messages"][1]["content"].as_array().unwrap();
    let kinds: Vec<_> = before.iter().map(|block| block["type"].as_str().unwrap()).collect();
    let search = ["server_tool_use", "web_search_tool_result"];
    assert_eq!(kinds, ["text", search[0], search[1], search[0], search[1], "text", "text"]);
}

#[tokio::test]
async fn a_provider_does_not_search_by_itself() {
    let server = maker().await;
    let provider = format!(
        "[providers.maker]\nvendor = \"anthropic\"\nbase_url = \"{}/v1\"\napi_key = \"{KEY}\"\n",
        server.url()
    );
    let asks =
        "[approval]\nkinds = [\"network\"]\n[verify]\nauto = false\n[search]\nnative = true\n";
    let engine = "[search]\nnative = true\napi = \"searxng\"\nbase_url = \"http://127.0.0.1:1\"\n";
    for config in [QUIET.to_owned(), asks.to_owned(), format!("{QUIET}{engine}")] {
        let world = World::start(&format!("{config}{provider}")).await;
        let client = world.client();
        let id = ask(&world, &client).await;
        say(&client, &id).await;
        assert!(!has_search(questions(&server).last().unwrap()), "{config}");
    }
}
