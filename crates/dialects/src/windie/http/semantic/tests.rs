//! The user and the model that a request names.

use super::*;
use crate::windie::fields;

#[test]
fn a_user_who_has_a_token_need_not_be_named() {
    let user = User { id: "user_1".into(), install: "install_1".into() };
    let check = |body: Value, user: Option<&User>, wrong: Option<&str>| {
        let read = fields::read("body", &body, |body| check_user(body, user));
        assert_eq!(read.err().map(|wrong| wrong.to_string()).as_deref(), wrong, "{body}");
    };
    check(json!({}), None, Some("body.user_id: Field required"));
    check(json!({}), Some(&user), None);
    check(json!({ "user_id": "u" }), None, None);
    check(json!({ "user_id": "another" }), Some(&user), None);
    let nobody = Some("body.user_id: Value error, user_id cannot be default_user");
    check(json!({ "user_id": "default_user" }), None, nobody);
    check(json!({ "user_id": "default_user" }), Some(&user), nobody);
}

#[test]
fn a_model_is_named_by_its_id_and_perhaps_its_provider() {
    let ours = ModelRef::parse("mine/best").unwrap();
    let check = |id: Option<&str>, provider: Option<&str>, then: &str| {
        assert_eq!(named(&ours, id, provider).model.to_string(), then);
    };
    check(None, None, "mine/best");
    check(Some(" "), Some("openai"), "mine/best");
    check(Some("other"), None, "mine/other");
    check(Some("other"), Some(" "), "mine/other");
    check(Some("gpt-5.4@@gpt-5-4-none-thinking"), Some("openai"), "openai/gpt-5.4");
}
