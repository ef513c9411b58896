//! The list of available models, in the form of the protocol.

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Effort, ModelInfo, ModelLocation, Price};
use serde_json::{Value, json};

use super::user_settings::Settings;

/// All of them: those that run here, those that do not, and those that can see.
pub(crate) fn payload(models: &[ModelInfo], settings: &Settings) -> Value {
    let usable = || models.iter().filter(|listed| is_usable(listed, settings));
    let on = |side: ModelLocation| -> Vec<Value> {
        usable().filter(|listed| listed.about.side == side).flat_map(entries).collect()
    };
    let sees = |listed: &&ModelInfo| listed.profile.inputs.contains(&MediaKind::Image);
    let vision: Vec<Value> = usable().filter(sees).map(|listed| entry(listed, None)).collect();
    json!({ "local": on(ModelLocation::Local), "online": on(ModelLocation::Online), "vision": vision })
}

/// All of them in one list.
pub(crate) fn listed(models: &[ModelInfo], settings: &Settings) -> Vec<Value> {
    models.iter().filter(|listed| is_usable(listed, settings)).flat_map(entries).collect()
}

/// Whether a user can have a model answer: the daemon has a key for it, or the user has.
fn is_usable(listed: &ModelInfo, settings: &Settings) -> bool {
    listed.usable || settings.key_for(&[&listed.model.provider]).is_some()
}

/// A model, once for each way in which it can be told to think.
fn entries(listed: &ModelInfo) -> Vec<Value> {
    let efforts = &listed.about.efforts;
    if efforts.is_empty() {
        vec![entry(listed, None)]
    } else {
        efforts.iter().map(|effort| entry(listed, Some(*effort))).collect()
    }
}

fn entry(listed: &ModelInfo, effort: Option<Effort>) -> Value {
    let about = &listed.about;
    let name = &listed.model.model;
    let label = if about.label.is_empty() { name } else { &about.label };
    let family = about.family.clone().unwrap_or(format!("{}::{name}", listed.model.provider));
    let modes: Vec<&str> = about.efforts.iter().map(|effort| effort.name()).collect();
    let usual = about.default_effort.or(about.efforts.first().copied());
    json!({
        "id": id(name, effort),
        "provider": listed.model.provider,
        "runtime_model_id": name,
        "family_id": family,
        "family_label": about.family_label.as_ref().unwrap_or(label),
        "display_name": effort.map_or(label.clone(), |effort| format!("{label} {}", titled(effort))),
        "supports_thinking": about.thinking || !about.efforts.is_empty(),
        "reasoning_mode": effort.map(Effort::name),
        "reasoning_modes": modes,
        "default_reasoning_mode": usual.map(Effort::name),
        "default_model_id": id(name, usual),
        "supports_native_web_search": about.web_search,
        "capabilities": { "supports_native_web_search": about.web_search },
        "context_window": listed.profile.context_window,
        "description": about.description,
        "strengths": about.strengths,
        "input_price": price(about.price, |price| price.input),
        "output_price": price(about.price, |price| price.output),
        "latency": about.latency.map(|latency| latency.name()),
    })
}

/// A model's name for clients: its own and, where it can be told to think, how much it does.
fn id(name: &str, effort: Option<Effort>) -> String {
    match effort {
        Some(effort) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let slug: String = name.chars().map(plain).collect();
            format!("{name}@@{slug}-{}-thinking", effort.name())
        }
        None => name.into(),
    }
}

fn titled(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "None",
        Effort::Minimal => "Minimal",
        Effort::Low => "Low",
        Effort::Medium => "Medium",
        Effort::High => "High",
        Effort::XHigh => "Extra High",
    }
}

/// A price for a million tokens in words.
fn price(price: Option<Price>, part: impl Fn(Price) -> u64) -> Option<String> {
    price.map(|price| match part(price) {
        0 => "Free".into(),
        millionths => format!("${:.2}/M", millionths as f64 / 1e6),
    })
}

#[cfg(test)]
mod tests {
    use quintet_kernel::model::{ModelDetails, ModelRef, Profile};

    use super::*;
    use crate::windie::wire::user_settings::{Key, choice};

    fn listed(model: &str, about: ModelDetails, inputs: Vec<MediaKind>) -> ModelInfo {
        let profile = Profile {
            inputs,
            tools: true,
            context_window: Some(400_000),
            search: Default::default(),
        };
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
        let locked =
            ModelInfo { usable: false, ..listed("a/b", ModelDetails::default(), Vec::new()) };
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
}
