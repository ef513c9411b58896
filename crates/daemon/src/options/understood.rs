//! The options with their words understood.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{ModelRef, Profile};
use quintet_kernel::policy::{Approval, Limits, OnDeny, Recovery, Verify};
use quintet_kernel::tool::Kind;
use quintet_providers::{Api, ProviderConfig, Retries, Secret, Timeouts};
use quintet_tools::sandbox::Sandbox;

use super::layers::Layers;

mod local;
mod sandbox;

/// A provider as it is configured.
pub(crate) type Provider = ProviderConfig;

/// What the daemon is told.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) data_dir: PathBuf,
    pub(crate) default_model: ModelRef,
    pub(crate) harness: Option<SocketAddr>,
    pub(crate) harness_token: Option<String>,
    pub(crate) harness_hosts: Vec<String>,
    pub(crate) session_tree: bool,
    pub(crate) providers: Vec<Provider>,
    /// The models of this machine, unless a provider of the configuration has that name.
    pub(crate) local: Option<quintet_local::Settings>,
    pub(crate) approval: Approval,
    pub(crate) verify: Verify,
    pub(crate) verify_commands: Vec<String>,
    pub(crate) sandbox: Sandbox,
    pub(crate) limits: Limits,
    pub(crate) recovery: Recovery,
    /// What the user should be told at start.
    pub(crate) advice: Vec<String>,
}

/// Protocols whose folder is not there yet.
const TO_COME: [&str; 5] = ["jarvis", "agent", "agent_health", "windie", "terminal"];

impl Options {
    pub(super) fn understand(layers: &Layers) -> Result<Self> {
        for protocol in TO_COME {
            let path = format!("listen.{protocol}");
            if layers.str(&path).is_some_and(|address| address != "off") {
                bail!(
                    "{path}: this version does not speak that protocol yet; set it to \"off\" ({})",
                    layers.source(&path)
                );
            }
        }
        choice(layers, "patch_review.mode", &[("off", ())])
            .context("patch review is not part of this version yet")?;
        let providers = providers(layers)?;
        let local = local::understand(layers, &providers)?;
        let (default_model, advice) = default_model(layers, &providers, local.as_ref())?;
        Ok(Self {
            data_dir: data_dir(layers)?,
            default_model,
            harness: address(layers, "listen.harness")?,
            harness_token: layers
                .str("harness.auth_token")
                .filter(|token| !token.is_empty())
                .map(Into::into),
            harness_hosts: layers.list("harness.hosts").unwrap_or_default(),
            session_tree: layers.flag("harness.session_tree").unwrap_or(true),
            providers,
            local,
            approval: approval(layers)?,
            verify: Verify {
                auto: layers.flag("verify.auto").unwrap_or(true),
                tool: "verify".into(),
                attempts: u32::try_from(layers.number("verify.attempts").unwrap_or(3))
                    .unwrap_or(u32::MAX),
            },
            verify_commands: layers.list("verify.commands").unwrap_or_default(),
            sandbox: sandbox::understand(layers)?,
            limits: limits(layers),
            recovery: choice(
                layers,
                "recovery.policy",
                &[
                    ("continue", Recovery::Continue),
                    ("ask", Recovery::Ask),
                    ("leave", Recovery::Leave),
                ],
            )?,
            advice,
        })
    }

    /// Whether nobody said which model to use.
    pub(crate) fn unconfigured(&self) -> bool {
        !self.advice.is_empty()
    }
}

fn data_dir(layers: &Layers) -> Result<PathBuf> {
    if let Some(dir) = layers.str("data_dir") {
        return Ok(dir.into());
    }
    let variable = |name: &str| layers.environment.get(name).filter(|value| !value.is_empty());
    match (variable("XDG_DATA_HOME"), variable("HOME")) {
        (Some(data), _) => Ok(PathBuf::from(data).join("quintet")),
        (None, Some(home)) => Ok(PathBuf::from(home).join(".local/share/quintet")),
        (None, None) => bail!("data_dir is not set, and there is no HOME to put it in"),
    }
}

fn address(layers: &Layers, path: &str) -> Result<Option<SocketAddr>> {
    match layers.str(path) {
        None | Some("off") => Ok(None),
        Some(text) => {
            let address = text.parse();
            let address = address.with_context(|| {
                format!(
                    "{path} must be an address like 127.0.0.1:8787, or \"off\", not {text:?} ({})",
                    layers.source(path)
                )
            })?;
            Ok(Some(address))
        }
    }
}

fn choice<T: Clone>(layers: &Layers, path: &str, words: &[(&str, T)]) -> Result<T> {
    let given = layers.str(path).unwrap_or_default();
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == given) {
        return Ok(meaning.clone());
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    bail!("{path} must be one of {known:?}, not {given:?} ({})", layers.source(path))
}

fn approval(layers: &Layers) -> Result<Approval> {
    let kind = |name: &String| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.with_context(|| {
            format!(
                "approval.kinds: there is no kind {name:?}; there are read, write, exec and network"
            )
        })
    };
    let kinds = layers.list("approval.kinds").unwrap_or_default();
    Ok(Approval {
        kinds: kinds.iter().map(kind).collect::<Result<_>>()?,
        tools: layers.list("approval.tools").unwrap_or_default(),
        on_deny: choice(
            layers,
            "approval.on_deny",
            &[("continue", OnDeny::Continue), ("fail", OnDeny::Fail)],
        )?,
        expires: layers.number("approval.expires_seconds").map(Duration::from_secs),
    })
}

fn limits(layers: &Layers) -> Limits {
    let number = |path: &str| layers.number(path).unwrap_or(u64::MAX);
    let small = |path: &str| u32::try_from(number(path)).unwrap_or(u32::MAX);
    Limits {
        steps: small("limits.steps").max(1),
        tokens: number("limits.tokens"),
        time: Duration::from_secs(number("limits.seconds")),
        repeats: small("limits.repeats").max(1),
        compact_at_percent: number("limits.compact_at_percent"),
    }
}

fn providers(layers: &Layers) -> Result<Vec<Provider>> {
    let mut providers = layers
        .names("providers")
        .iter()
        .filter(|name| !local::is_meant(layers, name))
        .map(|name| provider(layers, name))
        .collect::<Result<Vec<_>>>()?;
    if providers.iter().all(|provider| provider.name != "openai") {
        providers.extend(openai(layers));
    }
    if providers.iter().all(|provider| provider.name != "demo") {
        providers.push(plain("demo", Api::Demo, Vec::new()));
    }
    Ok(providers)
}

/// A key in the environment is as good as a section in the file.
fn openai(layers: &Layers) -> Option<Provider> {
    let key = layers.environment.get("OPENAI_API_KEY").filter(|key| !key.is_empty())?;
    let url = layers.environment.get("OPENAI_BASE_URL").filter(|url| !url.is_empty());
    let mut provider = plain("openai", Api::OpenAiChat, media());
    provider.base_url = url.map_or_else(|| "https://api.openai.com/v1".into(), Clone::clone);
    provider.api_key = Some(Secret::new(key.clone()));
    provider.models = vec!["gpt-4.1".into()];
    Some(provider)
}

fn provider(layers: &Layers, name: &str) -> Result<Provider> {
    let path = |field: &str| format!("providers.{name}.{field}");
    let word =
        layers.str(&path("api")).with_context(|| format!("providers.{name}.api is not set"))?;
    let Some(api) = Api::parse(word) else {
        bail!(
            "{}: this version does not speak {word:?}; it speaks openai-chat and demo",
            path("api")
        );
    };
    let mut provider = plain(name, api, inputs(layers, &path("inputs"), api)?);
    provider.base_url =
        layers.str(&path("base_url")).unwrap_or_default().trim_end_matches('/').into();
    if api == Api::OpenAiChat && provider.base_url.is_empty() {
        bail!("{} is not set", path("base_url"));
    }
    provider.api_key = key(layers, name)?.map(Secret::new);
    provider.models = layers.list(&path("models")).unwrap_or_default();
    provider.profile.tools = layers.flag(&path("tools")).unwrap_or(true);
    provider.profile.context_window = layers.number(&path("context_window"));
    if let Some(tries) = layers.number(&path("retries")) {
        provider.retries.more = u32::try_from(tries).unwrap_or(u32::MAX);
    }
    if let Some(seconds) = layers.number(&path("idle_timeout_seconds")) {
        provider.timeouts.idle = Duration::from_secs(seconds);
    }
    if let Some(seconds) = layers.number(&path("total_timeout_seconds")) {
        provider.timeouts.total = Duration::from_secs(seconds);
    }
    Ok(provider)
}

fn key(layers: &Layers, name: &str) -> Result<Option<String>> {
    if let Some(key) = layers.str(&format!("providers.{name}.api_key")) {
        return Ok(Some(key.into()));
    }
    let path = format!("providers.{name}.api_key_env");
    let Some(variable) = layers.str(&path) else { return Ok(None) };
    let key = layers.environment.get(variable);
    Ok(Some(key.with_context(|| format!("{path} names {variable}, which is not set"))?.clone()))
}

fn plain(name: &str, api: Api, inputs: Vec<MediaKind>) -> Provider {
    ProviderConfig {
        name: name.into(),
        api,
        base_url: String::new(),
        api_key: None,
        models: Vec::new(),
        profile: Profile { inputs, tools: true, context_window: None },
        timeouts: Timeouts::default(),
        retries: Retries::default(),
    }
}

fn media() -> Vec<MediaKind> {
    vec![MediaKind::Image, MediaKind::Audio, MediaKind::File]
}

/// What an unknown model takes is not known: it is offered everything and may refuse.
fn inputs(layers: &Layers, path: &str, api: Api) -> Result<Vec<MediaKind>> {
    let Some(words) = layers.list(path) else {
        return Ok(if api == Api::Demo { Vec::new() } else { media() });
    };
    let known = |word: &String| media().into_iter().find(|kind| kind.name() == word);
    let kind = |word: &String| {
        known(word).with_context(|| {
            format!("{path}: there is no input {word:?}; there are text, image, audio and file")
        })
    };
    words.iter().filter(|word| *word != "text").map(kind).collect()
}

fn default_model(
    layers: &Layers,
    providers: &[Provider],
    local: Option<&quintet_local::Settings>,
) -> Result<(ModelRef, Vec<String>)> {
    if let Some(text) = layers.str("default_model") {
        let model = ModelRef::parse(text)
            .with_context(|| format!("default_model must be provider/model, not {text:?}"))?;
        let known = providers.iter().map(|provider| provider.name.as_str());
        let known: Vec<&str> = known.chain(local.map(|_| quintet_local::PROVIDER)).collect();
        if !known.contains(&model.provider.as_str()) {
            bail!(
                "default_model names the provider {:?}, and there are only {known:?}",
                model.provider
            );
        }
        return Ok((model, Vec::new()));
    }
    let named = providers.iter().find_map(|provider| {
        let model = provider.models.first()?.clone();
        Some(ModelRef { provider: provider.name.clone(), model })
    });
    Ok(match named.or_else(|| local::ready(local?)) {
        Some(model) => (model, Vec::new()),
        None => {
            let advice = "no model is configured, so sessions use the built-in demo model, which only follows a few rules; \
                fetch one that runs here with `quintet models pull`, or set OPENAI_API_KEY, or [providers.NAME] and \
                default_model in the configuration file";
            let demo = ModelRef { provider: "demo".into(), model: "demo".into() };
            (demo, vec![advice.into()])
        }
    })
}
