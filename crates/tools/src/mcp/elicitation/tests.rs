//! What is asked, and what is not.

use quintet_kernel::question::QuestionForm;
use rmcp::model::ElicitRequestParams;
use serde_json::{Value, json};

use super::question;

#[test]
fn only_web_addresses_are_shown_as_links() {
    let form = |asked: Value| {
        let asked: ElicitRequestParams = serde_json::from_value(asked).unwrap();
        question("db", asked).map(|question| question.form)
    };
    let link = |url: &str| {
        form(json!({ "mode": "url", "message": "m", "url": url, "elicitationId": "1" }))
    };
    assert_eq!(link("https://a.example/x"), Ok(QuestionForm::Url("https://a.example/x".into())));
    assert_eq!(
        link("file:///etc/passwd"),
        Err("\"file:///etc/passwd\" is not a web address".into())
    );
    assert!(link("no address").is_err());
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let asked = form(json!({ "message": "m", "requestedSchema": schema }));
    assert!(
        matches!(asked, Ok(QuestionForm::Schema(schema)) if schema["properties"]["a"]["type"] == "string")
    );
}
