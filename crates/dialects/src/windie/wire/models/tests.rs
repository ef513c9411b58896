//! Which models a user is shown, and under which ids.

use quintet_kernel::model::{ModelDetails, ModelRef, Profile};

use super::*;
use crate::windie::wire::user_settings::{Key, choice};

fn listed(model: &str, about: ModelDetails, inputs: Vec<MediaKind>) -> ModelInfo {
    let profile =
        Profile { inputs, tools: true, context_window: Some(400_000), search: Default::default() };
    ModelInfo { model: ModelRef::parse(model).unwrap(), profile, about, usable: true }
}

#[test]
fn a_model_that_thinks_is_there_once_for_each_way() {
    let about = ModelDetails {
        label: "GPT-5.4".into(),
        efforts: vec![Effort::None, Effort::High],
        price: Some(Price { input: 1_250_000, output: 0, cached: None }),
        web_search: true,
        ..ModelDetails::default()
    };
    let models = [listed("openai/gpt-5.4", about, vec![MediaKind::Image])];
    let shown = payload(&models, &Settings::default());
    let first = &shown["online"][0];
    assert_eq!(first["id"], "gpt-5.4@@gpt-5-4-none-thinking");
    assert_eq!(first["runtime_model_id"], "gpt-5.4");
    assert_eq!(first["family_id"], "openai::gpt-5.4");
    assert_eq!(first["display_name"], "GPT-5.4 None");
    assert_eq!(first["reasoning_modes"], json!(["none", "high"]));
    assert_eq!(first["default_model_id"], "gpt-5.4@@gpt-5-4-none-thinking");
    assert_eq!(
        (&first["input_price"], &first["output_price"]),
        (&json!("$1.25/M"), &json!("Free"))
    );
    assert_eq!(first["capabilities"]["supports_native_web_search"], true);
    let second = shown["online"][1]["id"].as_str().unwrap();
    let chosen = choice("openai", second);
    assert_eq!((chosen.model.model.as_str(), chosen.effort), ("gpt-5.4", Some(Effort::High)));
    assert_eq!(shown["vision"][0]["id"], "gpt-5.4");
}

#[test]
fn models_of_this_machine_stand_apart_and_those_without_a_key_nowhere() {
    let here = ModelDetails { side: ModelLocation::Local, ..ModelDetails::default() };
    let local = listed("ollama/llama", here, Vec::new());
    let locked = ModelInfo { usable: false, ..listed("a/b", ModelDetails::default(), Vec::new()) };
    let shown = payload(&[local, locked], &Settings::default());
    assert_eq!(shown["local"][0]["id"], "llama");
    assert_eq!(shown["local"][0]["display_name"], "llama");
    assert_eq!((&shown["online"], &shown["vision"]), (&json!([]), &json!([])));
}

#[test]
fn who_has_a_key_of_his_own_can_choose_what_it_opens() {
    let locked = ModelInfo {
        usable: false,
        ..listed("openai/gpt-5.4", ModelDetails::default(), Vec::new())
    };
    let shown = |enabled: bool| {
        let key = Key { enabled, api_key: "sk-mine".into() };
        let provider_api_keys = [("openai".to_owned(), key)].into();
        payload(
            std::slice::from_ref(&locked),
            &Settings { provider_api_keys, ..Settings::default() },
        )
    };
    assert_eq!(shown(true)["online"][0]["id"], "gpt-5.4");
    assert_eq!(shown(false)["online"], json!([]));
}
