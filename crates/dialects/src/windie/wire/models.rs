//! The list of available models, in the form of the protocol.

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Effort, ModelInfo, ModelLocation, Price};
use serde_json::{Value, json};

use super::user_settings::Settings;

/// All models: local ones, online ones, and those that accept pictures.
pub(crate) fn payload(models: &[ModelInfo], settings: &Settings) -> Value {
    let usable = || models.iter().filter(|listed| is_usable(listed, settings));
    let on = |side: ModelLocation| -> Vec<Value> {
        usable().filter(|listed| listed.about.side == side).flat_map(entries).collect()
    };
    let sees = |listed: &&ModelInfo| listed.profile.inputs.contains(&MediaKind::Image);
    let vision: Vec<Value> = usable().filter(sees).map(|listed| entry(listed, None)).collect();
    json!({ "local": on(ModelLocation::Local), "online": on(ModelLocation::Online), "vision": vision })
}

/// All models in one list.
pub(crate) fn listed(models: &[ModelInfo], settings: &Settings) -> Vec<Value> {
    models.iter().filter(|listed| is_usable(listed, settings)).flat_map(entries).collect()
}

/// True if the daemon or the user has a key for a model.
fn is_usable(listed: &ModelInfo, settings: &Settings) -> bool {
    listed.usable || settings.key_for(&[&listed.model.provider]).is_some()
}

/// The entries of a model, one for each effort.
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

/// A client's model id: the model's name and its effort, if it has any.
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

/// The price of a million tokens as text.
fn price(price: Option<Price>, part: impl Fn(Price) -> u64) -> Option<String> {
    price.map(|price| match part(price) {
        0 => "Free".into(),
        millionths => format!("${:.2}/M", millionths as f64 / 1e6),
    })
}

#[cfg(test)]
mod tests;
