//! Analyses the user's last request and the work on it so far.

use std::collections::HashMap;

use quintet_kernel::model::{AssistantPart, Prompt, PromptMessage, PromptPart, assistant_calls};
use quintet_kernel::tool::ToolSpec;
use serde_json::{Value, json};

use super::code;
use super::intent::{self, asks, asks_workspace, wants_change, words_in};

/// Tools that change something.
const WRITES: &[&str] = &["edit_file", "append_file", "write_file", "apply_patch", "shell"];
/// Maximum number of named files that are read before the model is run.
const READ_AT_ONCE: usize = 3;

/// The last request of the user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// The user requested a change.
    pub(crate) wants_change: bool,
    /// A change was made since.
    pub(crate) changed: bool,
    /// The user asked a question.
    pub(crate) asks: bool,
    /// The user asked about the workspace.
    pub(crate) asks_workspace: bool,
    /// The last change was not tested yet.
    pub(crate) untried: bool,
    /// Number of model answers since.
    pub(crate) steps: usize,
    /// The last change was tested and does not work.
    pub(crate) broken: bool,
    /// The last call failed.
    pub(crate) stumbled: bool,
    /// Consecutive repeated calls while nothing changed.
    pub(crate) repeats: usize,
    /// A call other than a command failed since.
    pub(crate) failed: bool,
    /// Files as the model read them last, by path.
    pub(crate) files: HashMap<String, String>,
    /// Files as they were read first, and which of them were edited since.
    pub(super) originals: HashMap<String, String>,
    pub(super) edited: Vec<String>,
    /// The last search or read found nothing.
    pub(crate) missing: bool,
    /// Number of changes that were undone because they did not work.
    pub(crate) undone: usize,
    pub(super) text: String,
}

impl Request {
    pub(crate) fn of(prompt: &Prompt) -> Self {
        let mut request = Self::default();
        let mut calls: HashMap<&str, (&str, &Value)> = HashMap::new();
        let mut done: Vec<(&str, &Value)> = Vec::new();
        for message in prompt.messages.iter().map(|message| &**message) {
            match message {
                PromptMessage::System(_) => {}
                PromptMessage::User(parts) => {
                    let text = words_of(parts);
                    request = Self {
                        wants_change: wants_change(&text),
                        asks: asks(&text),
                        asks_workspace: asks_workspace(&text),
                        text,
                        originals: request.files.clone(),
                        files: request.files,
                        ..Self::default()
                    };
                    done.clear();
                }
                PromptMessage::Assistant { parts, .. } => {
                    request.steps += 1;
                    note_calls(&mut calls, parts);
                }
                PromptMessage::Result { call, tool, text, ok, .. } => {
                    let input = calls.get(call.as_str()).map_or(&Value::Null, |(_, input)| input);
                    let known = done.contains(&(tool, input));
                    request.repeats = if known { request.repeats + 1 } else { 0 };
                    request.failed |= !*ok && tool != "shell";
                    request.stumbled = !*ok;
                    request.missing = stays_missing(request.missing, tool, text, *ok);
                    request.broken = request.changed && tool == "shell" && !*ok;
                    request.untried &= tool != "shell";
                    if *ok && changes(tool) && !request.is_trial(input) {
                        request.changed = true;
                        request.untried = tool != "shell";
                        done.clear();
                    }
                    done.push((tool, input));
                    if *ok {
                        request.see(tool, input, text);
                        request.note_undo(tool, input);
                    }
                }
            }
        }
        request
    }

    /// Records the current content of files.
    fn see(&mut self, tool: &str, input: &Value, result: &str) {
        let Some(path) = input["path"].as_str().map(plain_path) else {
            // A command may have changed any file.
            if tool == "shell" {
                self.files.clear();
            }
            return;
        };
        let whole = input["start_line"].is_null() && !result.contains("more bytes follow; ");
        let content = match tool {
            "read_file" if whole => Some(result.to_owned()),
            "write_file" => input["content"].as_str().map(str::to_owned),
            "edit_file" => self.files.get(path).map(|content| {
                let (old, new) = (input["old"].as_str(), input["new"].as_str());
                content.replace(old.unwrap_or_default(), new.unwrap_or_default())
            }),
            _ => return,
        };
        if let Some(content) = content.as_ref().filter(|_| tool == "read_file") {
            self.originals.entry(path.into()).or_insert_with(|| content.clone());
        } else if !self.edited.iter().any(|edited| edited == path) {
            self.edited.push(path.into());
        }
        match content {
            Some(content) => drop(self.files.insert(path.into(), content)),
            None => drop(self.files.remove(path)),
        }
    }

    /// Starts over if a call restored the content from before.
    fn note_undo(&mut self, tool: &str, input: &Value) {
        let path = input["path"].as_str().map(plain_path).unwrap_or_default();
        let original = self.originals.get(path).map(String::as_str);
        if tool == "write_file" && original.is_some() && original == input["content"].as_str() {
            self.undone += 1;
            (self.changed, self.broken, self.untried, self.stumbled) = (false, false, false, false);
            self.edited.clear();
            self.steps = 1;
            self.repeats = 0;
        }
    }

    /// The call that undoes the change of a file, if it was tested and does not work.
    pub(crate) fn undo(&self) -> Option<Value> {
        let [path] = &self.edited[..] else { return None };
        let original =
            self.originals.get(path).filter(|_| self.broken && self.trial().is_some())?;
        let changed = self.files.get(path).is_none_or(|content| content != original);
        changed.then(|| json!({ "path": path, "content": original }))
    }

    /// The command that tests a change: it runs what the request names as a test or as a program to
    /// run.
    pub(crate) fn trial(&self) -> Option<String> {
        let runs = ["run", "runs", "running", "python3", "python", "sh", "bash", "node"];
        let lower = self.text.to_lowercase();
        let to_run = lower.split_whitespace().any(|word| runs.contains(&word));
        let path = self.named().into_iter().find(|path| to_run || is_test_file(path))?;
        let program = match path.rsplit_once('.')?.1 {
            "py" => "python3",
            "sh" => "sh",
            "js" | "mjs" => "node",
            _ => return None,
        };
        Some(format!("{program} {path}"))
    }

    /// True if a command only tests what the request is about.
    fn is_trial(&self, input: &Value) -> bool {
        let command = input["command"].as_str();
        command.is_some() && command == self.trial().as_deref()
    }

    /// True if the request states that something does not work.
    fn is_repair(&self) -> bool {
        intent::is_repair(&self.text)
    }

    /// True if a repair is requested, and code with functions was read for it.
    pub(crate) fn is_code_repair(&self) -> bool {
        let has_code = |content: &String| content.lines().any(|line| code::head(line).is_some());
        self.wants_change && self.is_repair() && self.files.values().any(has_code)
    }

    /// True if the request has one of these words.
    pub(crate) fn says(&self, wanted: &[&str]) -> bool {
        words_in(&self.text).iter().any(|word| wanted.contains(&word.as_str()))
    }

    /// The file to be written, if it does not exist yet.
    pub(crate) fn new_file(&self, system: &str) -> Option<&str> {
        let first = words_in(&self.text).into_iter().next()?;
        let writes = ["write", "create"].contains(&first.as_str());
        let fresh = |path: &&str| !system.contains(*path) && !self.files.contains_key(*path);
        self.named().into_iter().find(fresh).filter(|_| writes && !self.changed)
    }

    /// The files that the request names, in order.
    fn named(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for word in self.text.split_whitespace() {
            let path = plain_path(word.trim_matches(|letter: char| !letter.is_alphanumeric()));
            if is_file_name(path) && !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Calls that read the files which the request names, before the model is run: it would read
    /// them anyway, but writing those calls takes it seconds.
    pub(crate) fn first_reads(
        &self,
        system: &str,
        tools: &[std::sync::Arc<ToolSpec>],
    ) -> Vec<Value> {
        let reads = tools.iter().any(|tool| tool.name == "read_file");
        if self.steps > 0 || !reads {
            return Vec::new();
        }
        let is_worth_it = |path: &&str| {
            !self.files.contains_key(*path) && (system.contains(*path) || self.is_presumed(path))
        };
        let paths = self.named().into_iter().filter(is_worth_it);
        paths.take(READ_AT_ONCE).map(|path| json!({ "path": listed(path, system) })).collect()
    }

    /// True if the request states that something is in a file. Reading shows if the file does not
    /// exist.
    fn is_presumed(&self, path: &str) -> bool {
        let before = self.text.split(path).next().unwrap_or_default();
        let last = before.split_whitespace().next_back().unwrap_or_default();
        ["in", "of", "from"].contains(&last.to_lowercase().as_str())
    }

    /// The command that moves a file, if the request renames it.
    pub(crate) fn file_move(&self, old: &str, new: &str) -> Option<String> {
        let stem = |path: &&str, name: &str| {
            let file = path.rsplit('/').next().unwrap_or(path);
            file.rsplit_once('.').is_some_and(|(stem, _)| stem == name)
        };
        let named = self.named();
        let from = named.iter().find(|path| stem(path, old) && self.files.contains_key(**path))?;
        let to = named.iter().find(|path| stem(path, new) && !self.files.contains_key(**path))?;
        Some(format!("mv {from} {to}"))
    }

    /// The command that shows what does not work, before the model has written anything. A test is
    /// not run at this point: its failed assertion would distract the model from the code to fix.
    pub(crate) fn first_trial(&self, system: &str) -> Option<String> {
        let begins = self.steps == 0 && self.wants_change && self.is_repair();
        let trial = self.trial().filter(|_| begins)?;
        let path = trial.split_once(' ')?.1;
        (system.contains(path) && !is_test_file(path)).then_some(trial)
    }
}

/// True if the search or read found nothing, by the results up to this one.
pub(crate) fn stays_missing(before: bool, tool: &str, text: &str, ok: bool) -> bool {
    match tool {
        "read_file" if ok => false,
        "read_file" => text.starts_with("no such file"),
        "search" => text.trim() == "no matches",
        _ => before,
    }
}

fn note_calls<'p>(calls: &mut HashMap<&'p str, (&'p str, &'p Value)>, parts: &'p [AssistantPart]) {
    for call in assistant_calls(parts) {
        calls.insert(call.call.as_str(), (&call.tool, &call.input));
    }
}

fn words_of(parts: &[PromptPart]) -> String {
    let text = |part: &PromptPart| match part {
        PromptPart::Text(text) => Some(text.clone()),
        PromptPart::Media { .. } => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

/// True if a result is a file with code that the request wants repaired.
pub(crate) fn repairs(request: &str, tool: &str, text: &str) -> bool {
    let has_code = text.lines().any(|line| code::head(line).is_some());
    tool == "read_file" && has_code && wants_change(request) && intent::is_repair(request)
}

/// True if a tool may change something.
pub(crate) fn changes(tool: &str) -> bool {
    WRITES.contains(&tool)
}

/// A path relative to the workspace.
pub(crate) fn plain_path(path: &str) -> &str {
    path.trim().trim_start_matches("./")
}

/// The path of a listed file, if only its name is given.
fn listed<'s>(name: &'s str, system: &'s str) -> &'s str {
    let ending = format!("/{name}");
    let mut paths = system.lines().map(str::trim).filter(|line| line.ends_with(&ending));
    match (paths.next(), paths.next()) {
        (Some(path), None) if !system.lines().any(|line| line.trim() == name) => path,
        _ => name,
    }
}

fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("test_") || name.contains("_test.") || name.contains(".test.")
}

fn is_file_name(word: &str) -> bool {
    let Some((stem, ending)) = word.rsplit_once('.') else { return false };
    let letters = (1..=5).contains(&ending.len())
        && ending.chars().all(|letter| letter.is_ascii_alphanumeric());
    !stem.is_empty()
        && !word.contains("://")
        && letters
        && ending.chars().any(|letter| letter.is_ascii_alphabetic())
}

#[cfg(test)]
pub(super) mod tests;
