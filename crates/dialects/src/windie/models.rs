//! The models that can be chosen, as clients are shown them.

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Effort, Latency, Listed, Side};
use serde_json::{Value, json};

/// All of them, by where they run. A model that can be told how much to think is there once for each.
pub(super) fn catalogue(models: &[Listed]) -> Value {
    let of = |side: Side| -> Vec<Value> {
        let models = models.iter().filter(|listed| listed.usable && listed.about.side == side);
        models.flat_map(variants).collect()
    };
    let sees = |listed: &&Listed| listed.profile.inputs.contains(&MediaKind::Image);
    let vision: Vec<Value> =
        models.iter().filter(|listed| listed.usable).filter(sees).map(plain).collect();
    json!({ "local": of(Side::Local), "online": of(Side::Online), "vision": vision })
}

fn variants(listed: &Listed) -> Vec<Value> {
    match &listed.about.efforts[..] {
        [] => vec![entry(listed, None)],
        efforts => efforts.iter().map(|effort| entry(listed, Some(*effort))).collect(),
    }
}

/// A model's name with how much it thinks, as clients choose it.
fn id(listed: &Listed, effort: Option<Effort>) -> String {
    let model = &listed.model.model;
    match effort {
        None => model.clone(),
        Some(effort) => {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let name: String = model.chars().map(plain).collect();
            format!("{model}@@{name}-{}-thinking", effort.name())
        }
    }
}

fn label(listed: &Listed) -> String {
    match listed.about.label.as_str() {
        "" => listed.model.to_string(),
        label => label.into(),
    }
}

fn plain(listed: &Listed) -> Value {
    json!({
        "id": listed.model.model,
        "provider": listed.model.provider,
        "display_name": label(listed),
    })
}

fn entry(listed: &Listed, effort: Option<Effort>) -> Value {
    let about = &listed.about;
    let mut entry = plain(listed);
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            entry[name] = value;
        }
    };
    if let Some(effort) = effort {
        let usual = about.default_effort.or(about.efforts.first().copied());
        let modes: Vec<&str> = about.efforts.iter().map(|effort| effort.name()).collect();
        set("id", id(listed, Some(effort)).into());
        set("display_name", format!("{} {}", label(listed), title(effort)).into());
        set("reasoning_mode", effort.name().into());
        set("reasoning_modes", modes.into());
        set("default_reasoning_mode", usual.map(Effort::name).into());
        set("default_model_id", id(listed, usual).into());
    }
    set("runtime_model_id", listed.model.model.clone().into());
    set("family_id", about.family.clone().into());
    set("family_label", about.family_label.clone().into());
    set("supports_thinking", about.thinking.into());
    set("supports_native_web_search", about.web_search.into());
    set("capabilities", json!({ "supports_native_web_search": about.web_search }));
    set("context_window", listed.profile.context_window.into());
    set("description", about.description.clone().into());
    set("strengths", about.strengths.clone().into());
    set("latency", about.latency.map(Latency::name).into());
    let price = |micros: u64| match micros {
        0 => "Free".to_owned(),
        micros => format!("${}.{:02}/M", micros / 1_000_000, micros % 1_000_000 / 10_000),
    };
    set("input_price", about.price.map(|prices| price(prices.input)).into());
    set("output_price", about.price.map(|prices| price(prices.output)).into());
    entry
}

/// How much it thinks, for people.
fn title(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "None",
        Effort::Minimal => "Minimal",
        Effort::Low => "Low",
        Effort::Medium => "Medium",
        Effort::High => "High",
        Effort::XHigh => "Extra High",
    }
}

#[cfg(test)]
mod tests {
    use quintet_kernel::model::{About, ModelRef, Price, Profile};

    use super::super::settings::choice;
    use super::*;

    fn listed(name: &str, side: Side, efforts: Vec<Effort>) -> Listed {
        Listed {
            model: ModelRef::parse(name).unwrap(),
            profile: Profile {
                inputs: vec![MediaKind::Image],
                tools: true,
                context_window: Some(9),
            },
            about: About {
                side,
                default_effort: efforts.last().copied(),
                efforts,
                price: Some(Price { input: 1_250_000, output: 0, cached: None }),
                ..About::default()
            },
            usable: true,
        }
    }

    #[test]
    fn what_is_listed_can_be_chosen() {
        let models = [
            listed("openai/gpt-5.4", Side::Online, vec![Effort::None, Effort::High]),
            listed("ollama/llama", Side::Local, vec![]),
            Listed { usable: false, ..listed("anthropic/claude", Side::Online, vec![]) },
        ];
        let all = catalogue(&models);
        assert_eq!(all["online"].as_array().unwrap().len(), 2);
        assert_eq!(all["online"][0]["id"], "gpt-5.4@@gpt-5-4-none-thinking");
        assert_eq!(all["online"][0]["default_model_id"], "gpt-5.4@@gpt-5-4-high-thinking");
        assert_eq!(all["online"][0]["runtime_model_id"], "gpt-5.4");
        assert_eq!(all["online"][0]["input_price"], "$1.25/M");
        assert_eq!(all["online"][0]["output_price"], "Free");
        let chosen = choice("openai", all["online"][1]["id"].as_str().unwrap());
        assert_eq!((chosen.model, chosen.effort), (models[0].model.clone(), Some(Effort::High)));
        assert_eq!(all["local"][0]["id"], "llama");
        assert_eq!(all["vision"].as_array().unwrap().len(), 2);
    }
}
