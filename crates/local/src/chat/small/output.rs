//! Formats the output of a command as text: small models read escaped JSON badly, and a long
//! traceback hides the error.

use serde_json::Value;

/// The beginning of a Python traceback, and of each location in it.
const TRACEBACK: &str = "Traceback (most recent call last):\n";
const PLACE: &str = "  File \"";

/// The result of the shell tool as text; other results are unchanged.
pub(crate) fn as_text(result: &str) -> String {
    let (report, notes) = result.split_once('\n').unwrap_or((result, ""));
    let Ok(report) = serde_json::from_str::<Value>(report) else { return result.into() };
    let (Some(stdout), Some(stderr)) = (report["stdout"].as_str(), report["stderr"].as_str())
    else {
        return result.into();
    };
    let stderr = last_location(stderr);
    let ended = match report["exit_code"].as_i64() {
        Some(0) if stdout.trim().is_empty() && stderr.trim().is_empty() => Some("done".to_owned()),
        Some(0) => None,
        Some(code) => Some(format!("failed with exit code {code}")),
        None => Some("did not end".to_owned()),
    };
    let advice = advice(&stderr);
    // Notes are about undo, which a small model does not use.
    let notes = Some(notes).filter(|notes| !notes.starts_with("[not recorded"));
    let parts = [ended.as_deref(), Some(stdout), Some(&stderr), advice.as_deref(), notes];
    let parts = parts.into_iter().flatten().map(str::trim_end).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n")
}

/// A traceback with only its last location, without the folders of its file.
fn last_location(stderr: &str) -> String {
    let text = stderr.replace(TRACEBACK, "");
    let Some(at) = text.rfind(PLACE) else { return text };
    let place = &text[at + PLACE.len()..];
    let Some((path, rest)) = place.split_once('"') else { return text };
    let name = path.rsplit('/').next().unwrap_or(path);
    let kept = rest.lines().filter(|line| !is_marker(line)).collect::<Vec<_>>().join("\n");
    format!("{name}{kept}")
}

/// True for the line that points at a part of the code line above.
fn is_marker(line: &str) -> bool {
    !line.trim().is_empty() && line.trim().chars().all(|letter| "^~".contains(letter))
}

/// The usual meaning of an error.
fn advice(stderr: &str) -> Option<String> {
    let undefined =
        stderr.split("NameError: name '").nth(1).and_then(|rest| rest.split('\'').next());
    undefined.map(|name| {
        format!(
            "({name} is not defined. If it is a module, call append_file with the text \"import {name}\": \
             imports are put at the top of the file.)"
        )
    })
}

#[cfg(test)]
mod tests;
