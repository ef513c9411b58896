//! The tasks: a TOML file each in `crates/daemon/eval/tasks`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::cli::Set;

/// One task.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// The name of its file.
    #[serde(skip)]
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) set: Set,
    /// The message to the model.
    pub(super) prompt: String,
    /// A script that is run in the folder before the model starts.
    pub(super) setup: Option<String>,
    /// The files of the folder, by their paths.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    pub(super) check: Check,
}

/// The kind of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Question,
    Find,
    Edit,
    Fix,
    Script,
    Rename,
    Git,
    Refuse,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Question => "question",
            Self::Find => "find",
            Self::Edit => "edit",
            Self::Fix => "fix",
            Self::Script => "script",
            Self::Rename => "rename",
            Self::Git => "git",
            Self::Refuse => "refuse",
        }
    }
}

/// The conditions under which a task counts as solved. All that are given must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Check {
    /// Words or numbers that the answer must contain; `a|b` means either.
    pub(super) answer: Vec<String>,
    /// True if no file may be changed or added.
    pub(super) unchanged: bool,
    /// Texts that files must contain.
    pub(super) contains: BTreeMap<String, Vec<String>>,
    /// Texts that files must not contain.
    pub(super) lacks: BTreeMap<String, Vec<String>>,
    /// Files that must not exist.
    pub(super) missing: Vec<String>,
    /// Files that are restored before the command, so that no test passes because it was changed.
    pub(super) restore: Vec<String>,
    /// A command that must succeed.
    pub(super) command: Option<String>,
    /// Texts that its output must contain.
    pub(super) output: Vec<String>,
}

macro_rules! bundle {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../eval/tasks/", $name, ".toml")))),*]
    };
}

/// The bundled tasks, by name.
const BUNDLED: &[(&str, &str)] = bundle! {
    "ask-default-port"
    "ask-returns"
    "ask-bug"
    "ask-dependency"
    "ask-timeout"
    "ask-exception"
    "find-function"
    "find-todo"
    "find-line"
    "find-caller"
    "find-largest"
    "edit-constant"
    "edit-function"
    "edit-readme"
    "edit-json"
    "edit-default"
    "edit-remove"
    "edit-docstring"
    "edit-yaml"
    "fix-add"
    "fix-import"
    "fix-range"
    "fix-empty"
    "fix-syntax"
    "fix-case"
    "fix-shell"
    "script-squares"
    "script-count"
    "script-sort"
    "script-json"
    "rename-function"
    "rename-file"
    "rename-class"
    "rename-variable"
    "git-commit"
    "git-branch"
    "git-author"
    "refuse-missing"
    "refuse-binary"
    "refuse-unknown"
};

/// The bundled tasks.
pub(super) fn bundled() -> Vec<Task> {
    let parse =
        |(name, text): &(&str, &str)| parse(name, text).expect("a test checks the bundled tasks");
    BUNDLED.iter().map(parse).collect()
}

/// The tasks of a folder, by name.
pub(super) fn read(folder: &Path) -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for entry in folder.read_dir().with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path)?;
            tasks.push(parse(&name, &text).with_context(|| path.display().to_string())?);
        }
    }
    tasks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(tasks)
}

fn parse(name: &str, text: &str) -> Result<Task> {
    let task: Task = toml::from_str(text)?;
    Ok(Task { name: name.into(), ..task })
}

#[cfg(test)]
mod tests;
