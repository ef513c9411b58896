//! Adds servers to the configuration file and removes them; every other line stays unchanged.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use quintet_kernel::port::ServerSandbox;
use toml::{Table, Value};

/// A server to add.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) command: Vec<String>,
    pub(super) url: Option<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) sandbox: ServerSandbox,
}

/// Adds a server. Fails if the name is taken, or if `check` refuses the new file.
pub(super) fn add(
    file: &Path,
    name: &str,
    entry: &Entry,
    check: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let text = read(file)?;
    write(file, &added(&text, name, entry)?, check)
}

/// Removes a server. Fails if there is none of this name.
pub(super) fn remove(file: &Path, name: &str) -> Result<()> {
    let text = read(file)?;
    write(file, &removed(&text, name)?, |_| Ok(()))
}

fn read(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("{} cannot be read", file.display())),
    }
}

/// Replaces the file atomically, so that a crash leaves the old one or the new one, unless `check`
/// refuses the new one.
fn write(file: &Path, text: &str, check: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let mut next = file.as_os_str().to_owned();
    next.push(".next");
    let mut options = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut written = options.write(true).create(true).truncate(true).open(&next)?;
    if let Ok(old) = fs::metadata(file) {
        written.set_permissions(old.permissions())?;
    }
    written.write_all(text.as_bytes())?;
    written.sync_all()?;
    if let Err(refused) = check(Path::new(&next)) {
        fs::remove_file(&next)?;
        return Err(refused);
    }
    fs::rename(&next, file).with_context(|| format!("{} cannot be written", file.display()))
}

fn servers(text: &str) -> Result<Vec<String>> {
    let table: Table = text.parse().context("the configuration file is not TOML")?;
    let servers = table.get("mcp").and_then(|mcp| mcp.get("servers")).and_then(Value::as_table);
    Ok(servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default())
}

fn added(text: &str, name: &str, entry: &Entry) -> Result<String> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if name.is_empty() || !name.chars().all(plain) {
        bail!("{name:?} is not a valid name for a server: use letters, digits, \"_\" and \"-\"");
    }
    if servers(text)?.iter().any(|known| known == name) {
        bail!("there is an MCP server {name} already; `quintet mcp remove {name}` takes it out");
    }
    let quoted = |text: &String| Value::String(text.clone()).to_string();
    let mut new = text.trim_end().to_owned();
    let gap = if new.is_empty() { "" } else { "\n\n" };
    writeln!(new, "{gap}[mcp.servers.{name}]")?;
    match &entry.url {
        Some(url) => writeln!(new, "url = {}", quoted(url))?,
        None => {
            let words: Vec<String> = entry.command.iter().map(quoted).collect();
            writeln!(new, "command = [{}]", words.join(", "))?;
        }
    }
    if let Some(seconds) = entry.timeout_seconds {
        writeln!(new, "timeout_seconds = {seconds}")?;
    }
    new.push_str(&sandbox_lines(&entry.sandbox));
    for (table, pairs) in [("env", &entry.env), ("headers", &entry.headers)] {
        if !pairs.is_empty() {
            writeln!(new, "[mcp.servers.{name}.{table}]")?;
        }
        for (key, value) in pairs {
            writeln!(new, "{} = {}", quoted(key), quoted(value))?;
        }
    }
    if !servers(&new)?.iter().any(|known| known == name) {
        bail!("the file has its servers in a form that cannot be added to; add it by hand");
    }
    Ok(new)
}

/// The lines for what differs from the usual sandbox.
fn sandbox_lines(sandbox: &ServerSandbox) -> String {
    let flag = |key: &str, is_on: bool| (!is_on).then(|| format!("{key} = false\n"));
    let list = |key: &str, paths: &[PathBuf]| {
        let paths: Vec<Value> =
            paths.iter().map(|path| Value::String(path.display().to_string())).collect();
        (!paths.is_empty()).then(|| format!("{key} = {}\n", Value::Array(paths)))
    };
    let ServerSandbox { enabled, network, read, write } = sandbox;
    let lines = [
        flag("sandbox", *enabled),
        flag("network", *network),
        list("read", read),
        list("write", write),
    ];
    lines.into_iter().flatten().collect()
}

fn removed(text: &str, name: &str) -> Result<String> {
    let before = servers(text)?;
    if !before.iter().any(|known| known == name) {
        bail!("there is no MCP server {name} in the file");
    }
    let own = format!("mcp.servers.{name}");
    let (mut kept, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        let header = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next());
        if let Some(header) = header.filter(|_| !line.starts_with(' ')) {
            let header: String = header.chars().filter(|it| !" \"'[".contains(*it)).collect();
            inside = header == own || header.starts_with(&format!("{own}."));
        }
        if !inside {
            kept.push(line);
        }
    }
    let text = kept.join("\n").trim_end().to_owned() + "\n";
    let after = servers(&text)?;
    let expected: Vec<&String> = before.iter().filter(|known| *known != name).collect();
    if after.iter().collect::<Vec<_>>() != expected {
        bail!("the server is written in a form that cannot be taken out; remove it by hand");
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
