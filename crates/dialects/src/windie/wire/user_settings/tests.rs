//! Settings: what is shown, what may be set, and that no key is ever shown.

use serde_json::{Value, json};

use super::*;
use crate::windie::fields;

/// What comes of a patch: what is wrong with its shape, or else with its values.
fn read(payload: &Value) -> Result<Patch, String> {
    let patch = fields::read("payload", payload, Patch::of);
    let patch = patch.map_err(|wrong| format!("shape {wrong}"))?;
    patch.map_err(|wrong| format!("value {wrong}"))
}

fn usual() -> ModelRef {
    ModelRef::parse("openai/gpt-5.4").unwrap()
}

#[track_caller]
fn set(settings: &mut Settings, payload: &Value) -> Vec<String> {
    let patch = read(payload).unwrap();
    let keys = patch.updated_keys.clone();
    settings.apply(patch);
    keys
}

#[test]
fn what_is_null_is_not_changed_and_not_said_to_be() {
    let mut settings = Settings::default();
    let keys = set(&mut settings, &json!({ "model_provider": null, "interaction_mode": "chat" }));
    assert_eq!((keys, settings.model_provider), (vec!["interaction_mode".to_owned()], None));
}

#[test]
fn a_user_who_set_nothing_is_shown_the_usual() {
    let expected = json!({
        "model_mode": "online",
        "model_provider": "openai",
        "selected_model_id": "gpt-5.4",
        "interaction_mode": "agent",
        "speech_mode_enabled": false,
        "wakeword_enabled": true,
        "wakeword_stt_enabled": false,
        "browser_automation_enabled": false,
        "include_query_screenshot": true,
        "provider_api_keys": {},
    });
    assert_eq!(Settings::default().shown(&usual()), expected);
    assert_eq!(Settings::default().choice(&usual()), None);
}

#[test]
fn everything_can_be_set() {
    let payload = json!({
        "model_mode": "local",
        "model_provider": "ollama",
        "selected_model_id": "llama",
        "interaction_mode": "chat",
        "speech_mode_enabled": true,
        "wakeword_enabled": false,
        "wakeword_stt_enabled": true,
        "browser_automation_enabled": true,
        "include_query_screenshot": false,
    });
    let mut settings = Settings::default();
    let keys = set(&mut settings, &payload);
    let mut shown = settings.shown(&usual());
    shown.as_object_mut().unwrap().remove("provider_api_keys");
    assert_eq!(shown, payload);
    assert_eq!(keys, payload.as_object().unwrap().keys().cloned().collect::<Vec<_>>());
    assert_eq!(Settings::kept(settings.keep()), Ok(settings));
}

#[test]
fn what_cannot_be_read_is_an_error_that_shows_no_key() {
    for kept in [
        json!({ "model_mode": 7 }),
        json!("sk-own"),
        json!({ "model_mode": "quantum", "provider_api_keys": {} }),
        json!({ "provider_api_keys": { "openai": "sk-own" } }),
    ] {
        let error = Settings::kept(kept).unwrap_err();
        assert!(!error.to_string().contains("sk-own"), "{error}");
    }
}

#[test]
fn what_is_not_named_stays() {
    let mut settings = Settings::default();
    set(&mut settings, &json!({ "model_provider": "a", "selected_model_id": "b" }));
    assert_eq!(set(&mut settings, &json!({})), Vec::<String>::new());
    let keys = set(&mut settings, &json!({ "wakeword_enabled": false }));
    assert_eq!(keys, ["wakeword_enabled"]);
    let model = ModelRef { provider: "a".into(), model: "b".into() };
    assert_eq!(settings.choice(&usual()), Some(Choice { model, effort: None }));
}

#[test]
fn keys_are_kept_and_never_shown() {
    let mut settings = Settings::default();
    let given = json!({ "provider_api_keys": {
        "openai": { "enabled": true, "api_key": "sk-secret" },
        "unheard_of": { "enabled": true, "anything": 1 },
    } });
    set(&mut settings, &given);
    let shown = json!({ "openai": { "enabled": true, "api_key": "" } });
    assert_eq!(settings.shown(&usual())["provider_api_keys"], shown);
    assert!(!format!("{settings:?} {:?}", read(&given)).contains("secret"));
    // A client that sends back what it was shown changes nothing.
    set(&mut settings, &json!({ "provider_api_keys": shown }));
    assert_eq!(settings.provider_api_keys["openai"].api_key, "sk-secret");
    set(&mut settings, &json!({ "provider_api_keys": { "openai": { "enabled": false } } }));
    assert_eq!(settings.shown(&usual())["provider_api_keys"]["openai"]["enabled"], false);
    set(&mut settings, &json!({ "provider_api_keys": { "openai": { "api_key": null } } }));
    assert_eq!(settings.provider_api_keys["openai"].api_key, "");
}

#[test]
fn a_patch_has_a_shape_and_its_values_make_sense() {
    let lines = r#"
        {"volume":7} => shape payload.volume: Extra inputs are not permitted
        {"wakeword_enabled":"yes"} => shape payload.wakeword_enabled: Input should be a valid boolean
        {"model_mode":1} => shape payload.model_mode: Input should be a valid string
        {"provider_api_keys":[]} => shape payload.provider_api_keys: Input should be a valid dictionary
        {"tools":{"x":1}} => shape payload.tools.x: Extra inputs are not permitted
        {"agent_definition":{"version":3}} => shape payload.agent_definition.version: Input should be 1
        {"model_mode":"cloud"} => value model_mode: Input should be 'local' or 'online'
        {"interaction_mode":"x"} => value interaction_mode: Input should be 'chat' or 'agent'
        {"selected_model_id":" "} => value selected_model_id: String should have at least 1 character
        {"provider_api_keys":{"openai":{"api_key":7,"x":1}}} => value provider_api_keys.openai.x: Extra inputs are not permitted; provider_api_keys.openai.api_key: Input should be a valid string
    "#;
    for line in lines.trim().lines() {
        let (payload, wrong) = line.trim().split_once(" => ").unwrap();
        assert_eq!(read(&serde_json::from_str(payload).unwrap()).unwrap_err(), wrong);
    }
}

#[test]
fn a_connection_can_be_given_other_tools() {
    let tools = json!({ "mode": "client_only", "client_manifest": { "tools": [] } });
    let patch = read(&json!({ "tools": tools, "agent_definition": { "id": "a" } })).unwrap();
    assert_eq!(patch.tools.unwrap().mode, Some(ToolsMode::ClientOnly));
    assert_eq!(patch.definition.unwrap().id.as_deref(), Some("a"));
    assert_eq!(patch.updated_keys, ["agent_definition", "tools"]);
    // The original client has a word for bringing others of the same kind.
    let tools = json!({ "mode": "replace_client_manifest", "client_manifest": { "tools": [] } });
    let patch = read(&json!({ "tools": tools })).unwrap();
    assert_eq!(patch.tools.unwrap().mode, None);
}

#[test]
fn a_models_name_can_say_how_much_it_thinks() {
    let effort = |id: &str| choice("p", id).effort;
    assert_eq!(choice("p", "gpt-5.4@@gpt-5-4-none-thinking").model.model, "gpt-5.4");
    assert_eq!(effort("gpt-5.4@@gpt-5-4-none-thinking"), Some(Effort::None));
    assert_eq!(effort("gpt-5.4@@gpt-5-4-xhigh-thinking"), Some(Effort::XHigh));
    assert_eq!(effort("gpt-5.4@@gpt-5-4-huge-thinking"), None);
    assert_eq!(effort("gpt-5.4"), None);
}

#[test]
fn a_provider_is_paid_with_the_key_that_bears_its_own_name() {
    let mut settings = Settings::default();
    let key = |secret: &str| json!({ "api_key": secret, "enabled": true });
    let keys = json!({ "openai": key("vendor's"), "openrouter": key("own") });
    set(&mut settings, &json!({ "provider_api_keys": keys }));
    assert_eq!(settings.key_for(&["openrouter", "openai"]), Some(("openrouter", "own")));
    assert_eq!(settings.key_for(&["home", "openai"]), Some(("openai", "vendor's")));
    assert_eq!(settings.key_for(&["home", "google"]), None);
}
