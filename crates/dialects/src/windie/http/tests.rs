//! Routes are those of the OpenAPI document, and what is no route is refused.

use std::collections::BTreeSet;

use tower::ServiceExt as _;

use super::*;

#[test]
fn the_openapi_document_names_every_route_and_no_other() {
    let document = openapi();
    let mut documented = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        documented.extend(methods.as_object().unwrap().keys().map(|method| (&**method, &**path)));
    }
    // Every GET answers HEAD, which only this one says.
    assert!(documented.remove(&("head", "/api/artifacts/{artifact_id}")));
    let documented: BTreeSet<String> = documented
        .into_iter()
        .map(|(method, path)| format!("{} {path}", method.to_uppercase()))
        .collect();
    let served: BTreeSet<String> = routes().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(served, documented);
}

#[test]
fn a_body_is_json() {
    let check = |body: &str, wrong: &str| {
        let said = Body::<0>::parse(body.as_bytes()).map(|_| ()).unwrap_err();
        assert_eq!(said.details(), serde_json::from_str::<Value>(wrong).unwrap());
    };
    check("", r#"[{ "type": "missing", "loc": ["body"], "msg": "Field required" }]"#);
    let broken = |column: usize| json!([{ "type": "json_invalid", "loc": ["body", column], "msg": "JSON decode error" }]);
    check("{\"a\":", &broken(5).to_string());
    check(&"[".repeat(5000), &broken(128).to_string());
}

#[tokio::test]
async fn what_is_not_there_is_told_from_what_is_not_allowed() {
    let stub = |(name, _): Route<AppState>| route(name, async || ());
    let router = routed(routes().map(stub)).with_state(());
    let check = async |method: &str, path: &str, status: u16| {
        let request =
            Request::builder().method(method).uri(path).body(axum::body::Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{method} {path}");
    };
    check("GET", "/api/install/me", 200).await;
    check("GET", "/api/install/me/", 200).await;
    check("GET", "/api/install/me//", 404).await;
    check("POST", "/api/install/me", 405).await;
    check("HEAD", "/api/artifacts/x.png", 200).await;
    check("DELETE", "/api/artifacts/x.png", 405).await;
    check("GET", "/api/artifacts/", 405).await;
    check("POST", "/api/artifacts", 200).await;
    check("POST", "/api/runs", 200).await;
    check("PUT", "/api/runs/x/events", 405).await;
    check("GET", "/api/runs/x/y/z", 404).await;
    check("POST", "/api/sdk/ocr/guess", 404).await;
    for path in ["/", "//", "/api", "/%00", "/ws"] {
        check("GET", path, 404).await;
    }
}
