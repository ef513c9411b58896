//! What the user set up: where data goes, where we listen, which model answers.

use std::fs;
use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use quintet_stores::DataDir;
use rustix::fs::statvfs;

use super::{Finding, listeners, weights};
use crate::cli::Flags;
use crate::options::{Options, Provider};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A disk with less room than this is nearly full.
const ROOM: u64 = 512 * 1024 * 1024;

pub(super) fn look(options: &Options, flags: &Flags) -> Vec<Finding> {
    let (data, runs) = data(&options.data_dir);
    let mut findings = data;
    findings.extend(flags.config.as_deref().and_then(|file| config(file, options)));
    findings.extend(listeners::look(&options.listeners, &options.auth, runs));
    findings.push(model(options));
    findings.extend(weights::look(options));
    findings.extend(weights::senses(options));
    findings.extend(search(options));
    findings
}

/// How the data directory is, and whether a daemon has it.
fn data(dir: &Path) -> (Vec<Finding>, bool) {
    let shown = dir.display();
    match DataDir::open(dir) {
        Ok(_) => (vec![private(dir), room(dir)], false),
        Err(quintet_stores::Error::InUse(_)) => {
            let mut findings = vec![private(dir), room(dir)];
            findings.insert(0, Finding::well("data", format!("{shown} is in use by a daemon")));
            (findings, true)
        }
        Err(error) => {
            let mend = format!("make {shown} a folder that you may write to, or set data_dir");
            (vec![Finding::ill("data", error.to_string(), mend)], false)
        }
    }
}

fn private(dir: &Path) -> Finding {
    let shown = dir.display();
    match mode(dir) {
        Some(mode) if mode & 0o077 != 0 => Finding::poor(
            "data",
            format!("others may look into {shown}"),
            format!("chmod 700 {shown}"),
        ),
        _ => Finding::well("data", format!("{shown} is yours alone")),
    }
}

fn room(dir: &Path) -> Finding {
    let Ok(disk) = statvfs(dir) else {
        return Finding::poor("data", "how much room there is cannot be told", "look at the disk");
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let shown = format!("{} MiB free", free / (1024 * 1024));
    match free < ROOM {
        true => Finding::poor("data", shown, "make room: sessions cannot go on without"),
        false => Finding::well("data", shown),
    }
}

/// A file with keys in it is nobody else's business.
fn config(file: &Path, options: &Options) -> Option<Finding> {
    let keys = options.providers.iter().any(|provider| provider.api_key.is_some())
        || options.search.key.is_some();
    let shown = file.display();
    let open = mode(file).is_some_and(|mode| mode & 0o077 != 0);
    Some(match keys && open {
        true => Finding::poor(
            "configuration",
            format!("others may read {shown}, and there are keys in use"),
            format!("chmod 600 {shown}, or name the key's variable with api_key_env"),
        ),
        false => Finding::well("configuration", shown.to_string()),
    })
}

fn model(options: &Options) -> Finding {
    let model = &options.default_model;
    let provider = options.providers.iter().find(|provider| provider.name == model.provider);
    match provider {
        Some(provider) if !provider.base_url.is_empty() => reach(&model.to_string(), provider),
        _ if model.provider == "demo" => Finding::poor(
            "model",
            "sessions use the demo model, which only follows a few rules",
            "`quintet models pull`, or set OPENAI_API_KEY, or [providers.NAME] and default_model",
        ),
        _ => Finding::well("model", model.to_string()),
    }
}

/// Nothing to say if nobody wants to search.
fn search(options: &Options) -> Option<Finding> {
    let search = &options.search;
    if let Some((what, mend)) = &search.complaint {
        return Some(Finding::poor("search", what, *mend));
    }
    let engine = search.engine.as_ref()?;
    Some(Finding::well("search", format!("web_search asks {}", engine.host())))
}

/// Whether somebody answers at the provider's address. No key is sent.
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
        Ok(()) => Finding::well("model", format!("{model}: {target} answers")),
        Err(error) => Finding::ill(
            "model",
            format!("{model}: {target} does not answer: {error}"),
            format!("start the server, or mend providers.{}.base_url", provider.name),
        ),
    }
}

fn mode(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|meta| meta.permissions().mode())
}
