//! The agents whose transcripts can be imported, and how their files are recognized.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use super::transcript::Transcript;
use super::{claude, codex, goose, opencode};

/// Maximum depth of searched folders.
const DEPTH_LIMIT: usize = 8;

/// An agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Source {
    Codex,
    Claude,
    Opencode,
    Goose,
}

impl Source {
    pub(super) const ALL: [Self; 4] = [Self::Codex, Self::Claude, Self::Opencode, Self::Goose];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Opencode => "opencode",
            Self::Goose => "goose",
        }
    }

    /// The default path of the agent's transcripts.
    pub(super) fn default_path(self, home: &Path, data: &Path) -> PathBuf {
        match self {
            Self::Codex => home.join(".codex/sessions"),
            Self::Claude => home.join(".claude/projects"),
            Self::Opencode => data.join("opencode"),
            Self::Goose => data.join("goose/sessions"),
        }
    }
}

/// Reads all transcripts at a path: a file, a database, or a folder with such files.
pub(super) fn read(source: Option<Source>, path: &Path) -> Result<Vec<Transcript>> {
    let found = fs::metadata(path)?;
    if found.is_file() {
        return read_file(source, path);
    }
    if opencode::is_storage(path) {
        return opencode::read_storage(path);
    }
    let (mut files, mut transcripts) = (Vec::new(), Vec::new());
    collect(path, DEPTH_LIMIT, &mut files)?;
    files.sort();
    for file in files {
        let read = if opencode::is_storage(&file) {
            opencode::read_storage(&file)
        } else {
            read_file(source, &file)
        };
        // A folder may contain other files, which are ignored.
        match read {
            Ok(read) => transcripts.extend(read),
            Err(error) => tracing::debug!(file = %file.display(), "no transcript: {error:#}"),
        }
    }
    Ok(transcripts)
}

/// Finds files that may be transcripts, and storage folders of opencode.
fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if kind.is_dir() && opencode::is_storage(&path) {
            files.push(path);
        } else if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, files)?;
        } else if kind.is_file() && matches!(ending, "jsonl" | "json" | "db") {
            files.push(path);
        }
    }
    Ok(())
}

fn read_file(source: Option<Source>, file: &Path) -> Result<Vec<Transcript>> {
    if file.extension().is_some_and(|ending| ending == "db") {
        return match opencode::read_database(file)? {
            Some(transcripts) => Ok(transcripts),
            None => goose::read_database(file)?.context("no database of opencode or goose"),
        };
    }
    let text = fs::read_to_string(file).context("the file is not text")?;
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or("transcript");
    // An export is one value; a log has one per line.
    let lines: Vec<Value> = match serde_json::from_str(&text) {
        Ok(whole) => vec![whole],
        Err(_) => text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
    };
    let read = |source: Source| match source {
        Source::Codex => codex::read(name, &lines),
        Source::Claude => claude::read(name, &lines),
        Source::Opencode => opencode::read(&lines),
        Source::Goose => goose::read(name, &lines),
    };
    let transcript = match source {
        Some(source) => read(source),
        None => Source::ALL.into_iter().find_map(read),
    };
    match transcript {
        Some(transcript) => Ok(vec![transcript]),
        None => bail!("not a transcript of codex, Claude Code, opencode or goose"),
    }
}
