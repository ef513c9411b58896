//! Declares the computer-use protocol: its listener and its options.

use std::sync::Arc;
use std::time::Duration;

use super::artifacts::ArtifactStore;
use super::encode::OptionalEvents;
use super::serve::{Registration, Settings, refuse, service};
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services, Shape, Task,
};

/// The name of its listener, for commands that are clients of the protocol.
pub const LISTENER: &str = "windie";

/// The computer-use protocol.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "windie",
    listeners: &[ListenerSpec::http(LISTENER, "127.0.0.1:8765")],
    options: &[
        ("windie.hosts", Shape::List, Some("[]")),
        ("windie.install_auth", Shape::Flag, Some("false")),
        ("windie.registration", Shape::Flag, Some("true")),
        ("windie.registration_secret", Shape::Secret, None),
        ("windie.artifact_limit_bytes", Shape::Number, Some("26214400")),
        ("windie.artifact_keep_seconds", Shape::Number, Some("604800")),
        ("windie.trace_events", Shape::Flag, Some("false")),
        ("windie.memory_events", Shape::Flag, Some("false")),
        ("windie.runs_key", Shape::Secret, None),
        ("windie.runs_control_key", Shape::Secret, None),
        ("windie.runs_lease_seconds", Shape::Number, Some("60")),
        ("windie.runs_max_losses", Shape::Number, Some("3")),
        ("windie.max_active_runs_per_workspace", Shape::Number, Some("1")),
        ("windie.embedding_service_key", Shape::Secret, None),
    ],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct Windie {
    hosts: Vec<String>,
    settings: Arc<Settings>,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    let values = config.values;
    let is_on = |key: &str| values.flag(key).unwrap_or(false);
    let keep = values.number("windie.artifact_keep_seconds").filter(|seconds| *seconds > 0);
    let settings = Settings {
        default_model: config.default_model.clone(),
        install_auth: is_on("windie.install_auth"),
        registration: registration(config)?,
        runs_key: config.token("windie.runs_key"),
        runs_control_key: config.token("windie.runs_control_key"),
        embedding_key: config.token("windie.embedding_service_key"),
        largest_artifact: values.number("windie.artifact_limit_bytes").unwrap_or(u64::MAX),
        keep_artifacts: keep.map(Duration::from_secs),
        workspace: config.data_dir.join("windie"),
        optional_events: OptionalEvents {
            traces: is_on("windie.trace_events"),
            memories: is_on("windie.memory_events"),
            speech: false,
        },
    };
    Ok(Box::new(Windie { hosts: config.list("windie.hosts"), settings: Arc::new(settings) }))
}

/// The rule for registering installs. Off this machine that takes a secret.
fn registration(config: &Config<'_>) -> Result<Registration, ConfigError> {
    let secret = config.token("windie.registration_secret");
    let registration = match (config.values.flag("windie.registration").unwrap_or(true), secret) {
        (false, _) => Registration::Off,
        (true, Some(secret)) => Registration::Secret(secret),
        (true, None) => Registration::Open,
    };
    let remote = config.address(LISTENER).filter(|address| !address.ip().is_loopback());
    match (remote, &registration) {
        (Some(address), Registration::Open) => Err(ConfigError(format!(
            "listen.windie = {address}: other machines could register, so \
             windie.registration_secret must be set, or windie.registration must be false ({})",
            config.values.source("listen.windie")
        ))),
        (Some(_) | None, _) => Ok(registration),
    }
}

/// The control plane of runs, as the configuration sets it up.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The key of its clients and workers, if there is one.
    pub key: Option<String>,
    /// The key that stops every run, if there is one.
    pub control_key: Option<String>,
    /// Active runs that a workspace may have.
    pub active: usize,
    /// How long a worker may be silent before it loses its run.
    pub lease: Duration,
    /// Lost workers after which a run fails.
    pub losses: u32,
}

/// Reads the options of runs. Fails if a limit is out of range.
pub fn run_options(config: &Config<'_>) -> Result<RunOptions, ConfigError> {
    let number = |key: &str, default: u32, most: u32| {
        let number = config.values.number(key).unwrap_or(default.into());
        let fits = u32::try_from(number).ok().filter(|number| (1..=most).contains(number));
        fits.ok_or_else(|| {
            let source = config.values.source(key);
            ConfigError(format!("{key} = {number}: must be from 1 to {most} ({source})"))
        })
    };
    let active = number("windie.max_active_runs_per_workspace", 1, 1_000_000)?;
    Ok(RunOptions {
        key: config.text("windie.runs_key").map(String::from),
        control_key: config.text("windie.runs_control_key").map(String::from),
        active: usize::try_from(active).unwrap_or(usize::MAX),
        lease: Duration::from_secs(number("windie.runs_lease_seconds", 60, 86_400)?.into()),
        losses: number("windie.runs_max_losses", 3, 1000)?,
    })
}

impl Protocol for Windie {
    fn serve(&self, services: &Arc<Services>, is_on: bool) -> ServedProtocol {
        if !is_on {
            return ServedProtocol::default();
        }
        let (ports, settings) = (Arc::clone(services), Arc::clone(&self.settings));
        let access = AccessRules {
            has_own_auth: settings.has_own_auth(),
            ..AccessRules::new(self.hosts.clone(), refuse)
        };
        let store = ArtifactStore::new(&ports);
        let sweep = Task::new(store.sweep(settings.keep_artifacts, services.closing.clone()));
        let service = Service::Http { router: service(ports, settings), access };
        ServedProtocol {
            endpoints: vec![Endpoint { listener: LISTENER, service }],
            background: vec![("the artifacts' sweep", sweep)],
        }
    }
}
