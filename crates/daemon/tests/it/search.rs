//! Tests of web search, by the tool and by a model's provider.

use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};

use crate::client::{Client, Event, text};
use crate::daemon::World;

const KEY: &str = "hush-0815-this-is-the-key";
const FOUND: &str = r#"{"query":"q","results":[{"url":"https://whales.example/","title":"Whales",
    "content":"They are back."}]}"#;
const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

/// The output of a tool, or its error.
fn output(events: &[Event]) -> String {
    let done = events.iter().find(|event| event.kind() == "tool_call_completed").unwrap();
    done.json["data"].to_string()
}

#[tokio::test]
async fn a_model_searches_with_the_configured_engine() {
    let engine = ReplayServer::start(CannedReply::json(200, FOUND)).await.unwrap();
    let config = format!(
        "{NO_APPROVALS}[search]\napi = \"searxng\"\nbase_url = {:?}\napi_key = \"{KEY}\"\n",
        engine.url()
    );
    let mut world = World::start(&config).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    // The model leaks a key that it should not know.
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
async fn create_session(world: &World, client: &Client) -> String {
    let model = "maker/claude-sonnet-4-5";
    let body = json!({ "workspace_path": world.workspace(), "model": model });
    let (status, session) = client.post("/v1/sessions", body).await;
    assert_eq!(status, 200, "{session}");
    session["session_id"].as_str().unwrap().to_owned()
}

async fn run_turn(client: &Client, id: &str) -> Vec<Event> {
    let part = json!({ "type": "text", "text": "how is the weather?" });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true });
    let (status, told) = client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    assert_eq!(status, 200, "{told}");
    client.until_over(id).await
}

async fn anthropic_server() -> ReplayServer {
    let stream = include_bytes!("../../../providers/tests/golden/anthropic/web_search.sse");
    ReplayServer::start(CannedReply::stream(stream.as_slice())).await.unwrap()
}

/// The model calls, without requests for the list of models.
fn model_calls(server: &ReplayServer) -> Vec<Value> {
    let asked = server.asked().into_iter().filter(|asked| asked.method == "POST");
    asked.map(|asked| asked.body).collect()
}

fn has_search(body: &Value) -> bool {
    let tools = body["tools"].as_array().unwrap();
    tools.iter().any(|tool| tool["type"] == "web_search_20250305")
}

#[tokio::test]
async fn a_provider_searches_if_allowed_and_gets_its_results_back() {
    let server = anthropic_server().await;
    let config = format!(
        "{NO_APPROVALS}[providers.maker]\nvendor = \"anthropic\"\nbase_url = \"{}/v1\"\napi_key = \"{KEY}\"\n\
         [search]\nnative = true\n",
        server.url()
    );
    let world = World::start(&config).await;
    let client = world.client();
    let id = create_session(&world, &client).await;
    assert_eq!(text(&run_turn(&client, &id).await), "I'll check.It is sunny. Go out.");
    run_turn(&client, &id).await;
    let asked = model_calls(&server);
    assert!(asked.len() == 2 && asked.iter().all(has_search));
    let before = asked[1]["messages"][1]["content"].as_array().unwrap();
    let kinds: Vec<_> = before.iter().map(|block| block["type"].as_str().unwrap()).collect();
    let search = ["server_tool_use", "web_search_tool_result"];
    assert_eq!(kinds, ["text", search[0], search[1], search[0], search[1], "text", "text"]);
}

#[tokio::test]
async fn a_provider_does_not_search_by_default() {
    let server = anthropic_server().await;
    let provider = format!(
        "[providers.maker]\nvendor = \"anthropic\"\nbase_url = \"{}/v1\"\napi_key = \"{KEY}\"\n",
        server.url()
    );
    let asks =
        "[approval]\nkinds = [\"network\"]\n[verify]\nauto = false\n[search]\nnative = true\n";
    let engine = "[search]\nnative = true\napi = \"searxng\"\nbase_url = \"http://127.0.0.1:1\"\n";
    for config in [NO_APPROVALS.to_owned(), asks.to_owned(), format!("{NO_APPROVALS}{engine}")] {
        let world = World::start(&format!("{config}{provider}")).await;
        let client = world.client();
        let id = create_session(&world, &client).await;
        run_turn(&client, &id).await;
        assert!(!has_search(model_calls(&server).last().unwrap()), "{config}");
    }
}
