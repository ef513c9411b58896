//! `quintet import`: imports transcripts of other agents as sessions.
//!
//! The files are read here; the daemon of the data directory stores the messages. A transcript that
//! was imported before is skipped.

mod claude;
mod codex;
mod goose;
mod opencode;
mod source;
mod transcript;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use quintet_dialects::{EDITORS, IMPORT};
use serde_json::{Value, json};

use crate::attach;
use crate::cli::Import;
use crate::options;

pub(crate) use source::Source;
use transcript::Transcript;

/// `quintet import`.
pub(crate) fn main(arguments: &Import) -> Result<()> {
    let paths = search_paths(arguments)?;
    let (mut transcripts, mut faults) = (Vec::new(), Vec::new());
    for (source, path) in &paths {
        match source::read(*source, path) {
            Ok(found) => transcripts.extend(found),
            Err(error) => faults.push(error.context(path.display().to_string())),
        }
    }
    transcripts.retain(|transcript| !transcript.messages.is_empty());
    let named = !arguments.paths.is_empty();
    if let Some(fault) = faults.pop().filter(|_| named) {
        return Err(fault);
    }
    if transcripts.is_empty() {
        bail!("there is nothing to import: no transcripts were found");
    }
    let mut daemon = Daemon::connect(arguments)?;
    let mut out = std::io::stdout().lock();
    for transcript in &transcripts {
        let source = transcript.source.name();
        match daemon.import(transcript) {
            Ok(taken) => {
                let (session, is_new) = (taken["sessionId"].as_str(), taken["imported"] == true);
                let state = if is_new { "imported" } else { "imported before" };
                let count = transcript.messages.len();
                let session = session.unwrap_or_default();
                writeln!(out, "{session}  {source}  {count} messages  {state}")?;
            }
            Err(error) => {
                eprintln!("quintet: {source} {}: {error:#}", transcript.id);
                faults.push(error);
            }
        }
    }
    if faults.is_empty() {
        Ok(())
    } else {
        bail!("{} of {} were not imported", faults.len(), transcripts.len())
    }
}

/// The paths to search: the given ones, or the default paths of each agent.
fn search_paths(arguments: &Import) -> Result<Vec<(Option<Source>, PathBuf)>> {
    if !arguments.paths.is_empty() {
        return Ok(arguments.paths.iter().map(|path| (arguments.from, path.clone())).collect());
    }
    let environment = options::environment();
    let variable = |name: &str| {
        let set = environment.iter().find(|(known, value)| known == name && !value.is_empty());
        set.map(|(_, value)| PathBuf::from(value))
    };
    let home = variable("HOME").context("HOME is not set: name the files to import")?;
    let data = variable("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let sources =
        Source::ALL.into_iter().filter(|source| arguments.from.is_none_or(|it| it == *source));
    let paths = sources.map(|source| (Some(source), source.default_path(&home, &data)));
    Ok(paths.filter(|(_, path)| path.exists()).collect())
}

/// The connection to the daemon that stores the messages.
struct Daemon {
    stream: BufReader<UnixStream>,
    requests: u64,
}

impl Daemon {
    fn connect(arguments: &Import) -> Result<Self> {
        let stream = BufReader::new(attach::open(&arguments.flags, EDITORS)?);
        let mut daemon = Self { stream, requests: 0 };
        daemon.call("initialize", &json!({ "protocolVersion": 1 }))?;
        Ok(daemon)
    }

    fn import(&mut self, transcript: &Transcript) -> Result<Value> {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        let cwd = transcript.cwd.as_deref().filter(|cwd| cwd.is_absolute()).unwrap_or(&here);
        self.call(
            IMPORT,
            &json!({
                "source": transcript.source.name(),
                "id": transcript.id,
                "cwd": path_text(cwd),
                "messages": transcript.messages,
            }),
        )
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.stream.get_mut().write_all(format!("{request}\n").as_bytes())?;
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("the daemon closed the connection");
            }
            let message: Value = serde_json::from_str(&line).context("the daemon's answer")?;
            if let Some(error) = message.get("error").filter(|_| message["id"].is_null()) {
                bail!("{}", error["message"].as_str().unwrap_or("the request was refused"));
            }
            if message["id"] != id {
                continue;
            }
            match message.get("error") {
                Some(error) => bail!("{}", error["message"].as_str().unwrap_or("refused")),
                None => return Ok(message["result"].clone()),
            }
        }
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
