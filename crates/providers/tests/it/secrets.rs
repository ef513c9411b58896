//! Tests that the key is redacted, even if a provider repeats it.

use quintet_kernel::port::Models as _;
use quintet_providers::{Api, ProviderConfig, Providers};
use quintet_testkit::replay_server::{CannedReply, ReplayServer};

use crate::{KEY, Received, collect, config, scripted};

const FAMILIES: [Api; 4] = [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic, Api::Gemini];

async fn call(api: Api, reply: CannedReply) -> Received {
    let server = ReplayServer::start(reply).await.unwrap();
    let config = ProviderConfig { api, ..config(format!("{}/v1", server.url())) };
    collect(Providers::new(vec![config]).stream(scripted("{}"))).await
}

/// Checks the results of all families for this reply: none contains the key.
async fn check(what: &str, reply: CannedReply) {
    for api in FAMILIES {
        let received = call(api, reply.clone()).await;
        let shown = format!("{received:?}");
        assert!(!shown.contains(KEY), "{what}, {api:?}: {shown}");
        assert!(matches!(received.end, Some(Err(_))), "{what}, {api:?}: {shown}");
    }
}

#[tokio::test]
async fn error_responses_do_not_contain_the_key() {
    let bodies = [
        format!(r#"{{"error":{{"message":"bad key {KEY}","type":"{KEY}","code":"{KEY}"}}}}"#),
        format!(r#"{{"error":"{KEY}"}}"#),
        format!(r#"{{"error":{{"headers":{{"authorization":"Bearer {KEY}"}}}}}}"#),
        format!(r#"[{{"error":{{"message":"{KEY}","details":[{{"reason":"{KEY}"}}]}}}}]"#),
        format!("plain {KEY}{KEY} text"),
    ];
    for status in [301, 400, 401, 403, 404, 413, 422, 429, 500, 503, 529] {
        for body in &bodies {
            check(&format!("{status} {body}"), CannedReply::json(status, body)).await;
        }
    }
}

#[tokio::test]
async fn stream_errors_do_not_contain_the_key() {
    for body in [
        format!("data: {{\"error\":{{\"message\":\"{KEY}\",\"code\":500}}}}\n\n"),
        format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"overloaded_error\",\"message\":\"{KEY}\"}}}}\n\n"
        ),
        format!("data: {{\"type\":\"error\",\"code\":\"x\",\"message\":\"{KEY}\"}}\n\n"),
        format!(
            "data: {{\"type\":\"response.failed\",\"response\":{{\"error\":{{\"code\":\"server_error\",\"message\":\"{KEY}\"}}}}}}\n\n"
        ),
        format!("data: {{nonsense {KEY}\n\n"),
        format!(
            "data: {{\"choices\":\"{KEY}\",\"candidates\":\"{KEY}\",\"type\":{{\"a\":\"{KEY}\"}}}}\n\n"
        ),
    ] {
        check(&body, CannedReply::stream(body.clone())).await;
        check(&body, CannedReply { mime: "text/html", ..CannedReply::stream(body.clone()) }).await;
        check(&body, CannedReply::json(200, &body)).await;
    }
}

/// Long messages are shortened, possibly in the middle of the key.
#[tokio::test]
async fn shortening_leaves_no_part_of_the_key() {
    for before in 2048 - KEY.len()..=2048 {
        let text = format!("{}{KEY}", "x".repeat(before));
        let received =
            call(Api::OpenAiChat, CannedReply::json(400, &format!("{text} and more"))).await;
        let message = received.failure().message;
        assert!(message.contains('…') && !message.contains(&KEY[..4]), "{before}: {message}");
    }
}
