//! Checks the configuration: data directory, listeners and models.

use std::fs;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use quintet_kernel::port::Finding;
use quintet_stores::DataDir;
use rustix::fs::statvfs;

use super::{listeners, weights};
use crate::cli::Flags;
use crate::options::{Options, Provider};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Free bytes below which a disk counts as nearly full.
const FREE_SPACE_MINIMUM: u64 = 512 * 1024 * 1024;

pub(super) fn check(options: &Options, flags: &Flags) -> Vec<Finding> {
    let (data, runs) = data(&options.data_dir);
    let mut findings = data;
    findings.extend(flags.config.as_deref().and_then(|file| config(file, options)));
    findings.extend(listeners::check(&options.listeners, &options.auth, runs));
    findings.push(model(options));
    findings.extend(weights::check_chat_models(options));
    findings.extend(weights::senses(options));
    findings.extend(search(options));
    findings
}

/// Checks the data directory; true if a daemon uses it.
fn data(dir: &Path) -> (Vec<Finding>, bool) {
    let shown = dir.display();
    match DataDir::open(dir) {
        Ok(_) => (vec![private(dir), free_space(dir)], false),
        Err(quintet_stores::Error::InUse(_)) => {
            let mut findings = vec![private(dir), free_space(dir)];
            findings.insert(0, Finding::ok("data", format!("{shown} is in use by a daemon")));
            (findings, true)
        }
        Err(error) => {
            let remedy = format!("make {shown} a folder that you may write to, or set data_dir");
            (vec![Finding::error("data", error.to_string(), remedy)], false)
        }
    }
}

fn private(dir: &Path) -> Finding {
    let shown = dir.display();
    match mode(dir) {
        Some(mode) if mode & 0o077 != 0 => Finding::warning(
            "data",
            format!("other users can read {shown}"),
            format!("chmod 700 {shown}"),
        ),
        _ => Finding::ok("data", format!("{shown} is readable by you alone")),
    }
}

fn free_space(dir: &Path) -> Finding {
    let Ok(disk) = statvfs(dir) else {
        return Finding::warning(
            "data",
            "the free disk space cannot be determined",
            "check the disk",
        );
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let shown = format!("{} MiB free", free / (1024 * 1024));
    if free < FREE_SPACE_MINIMUM {
        Finding::warning("data", shown, "free disk space: sessions stop when the disk is full")
    } else {
        Finding::ok("data", shown)
    }
}

/// Checks that a configuration file with keys is private.
fn config(file: &Path, options: &Options) -> Option<Finding> {
    let keys = options.providers.iter().any(|provider| provider.api_key.is_some())
        || options.search.key.is_some();
    let shown = file.display();
    let open = mode(file).is_some_and(|mode| mode & 0o077 != 0);
    Some(if keys && open {
        Finding::warning(
            "configuration",
            format!("other users can read {shown}, and keys are in use"),
            format!("chmod 600 {shown}, or name the key's variable with api_key_env"),
        )
    } else {
        Finding::ok("configuration", shown.to_string())
    })
}

fn model(options: &Options) -> Finding {
    let model = &options.default_model;
    let provider = options.providers.iter().find(|provider| provider.name == model.provider);
    match provider {
        Some(provider) if !provider.base_url.is_empty() => reach(&model.to_string(), provider),
        _ if model.provider == "demo" => Finding::warning(
            "model",
            "sessions use the demo model, which only follows a few rules",
            "`quintet models pull`, or set OPENAI_API_KEY, or [providers.NAME] and default_model",
        ),
        _ => Finding::ok("model", model.to_string()),
    }
}

/// Checks the web search; `None` if it is not configured.
fn search(options: &Options) -> Option<Finding> {
    let search = &options.search;
    if let Some((message, remedy)) = &search.warning {
        return Some(Finding::warning("search", message, *remedy));
    }
    let engine = search.engine.as_ref()?;
    Some(Finding::ok("search", format!("web_search asks {}", engine.host())))
}

/// Checks whether the provider's address answers. No key is sent.
fn reach(model: &str, provider: &Provider) -> Finding {
    let url = provider.base_url.as_str();
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    let port = if url.starts_with("https") { 443 } else { 80 };
    let target = if host.rsplit(':').next().is_some_and(|end| end.parse::<u16>().is_ok()) {
        host.to_owned()
    } else {
        format!("{host}:{port}")
    };
    let connected = target.to_socket_addrs().and_then(|addresses| {
        let mut last = io::Error::other("no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(last)
    });
    match connected {
        Ok(()) => Finding::ok("model", format!("{model}: {target} answers")),
        Err(error) => Finding::error(
            "model",
            format!("{model}: {target} does not answer: {error}"),
            format!("start the server, or correct providers.{}.base_url", provider.name),
        ),
    }
}

fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|meta| meta.permissions().mode())
}
