//! Corrects calls that are nearly right, with what the model was shown of the files: small models copy a
//! line without its indentation, or change a file that they have not read.

use quintet_kernel::model::AskedCall;
use serde_json::{Map, Value, json};

use super::code;
use super::request::{Request, plain_path};

/// The call as it should be.
pub(crate) fn mend(request: &Request, call: AskedCall) -> AskedCall {
    let Ok(Value::Object(mut input)) = serde_json::from_str(&call.arguments) else { return call };
    let Some(path) =
        input.get("path").and_then(Value::as_str).map(|path| plain_path(path).to_owned())
    else {
        return call;
    };
    let path = known_path(request, path);
    input.insert("path".into(), path.clone().into());
    let (tool, input) = match (call.tool.as_str(), request.files.get(&path)) {
        ("edit_file", None) => ("read_file", json!({ "path": path })),
        ("edit_file", Some(content)) => edit(&path, content, input),
        (other, _) => (other, Value::Object(input)),
    };
    AskedCall { tool: tool.into(), arguments: input.to_string(), ..call }
}

/// The path of a file that was seen, if the given one is only its name.
fn known_path(request: &Request, path: String) -> String {
    if request.files.contains_key(&path) {
        return path;
    }
    let ends = |known: &&String| {
        path.ends_with(&format!("/{known}")) || known.ends_with(&format!("/{path}"))
    };
    let mut known = request.files.keys().filter(ends);
    match (known.next(), known.next()) {
        (Some(one), None) => one.clone(),
        _ => path,
    }
}

fn edit(path: &str, content: &str, mut input: Map<String, Value>) -> (&'static str, Value) {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (old, new) = (text("old"), text("new"));
    if old.trim().is_empty() {
        let content = format!("{}\n\n\n{}\n", content.trim_end(), new.trim());
        return ("write_file", json!({ "path": path, "content": content }));
    }
    let (old, new) = match content.contains(&old) {
        true => (old, new),
        false => fitted(content, &old, &new).unwrap_or((old, new)),
    };
    let (old, new) = whole_definition(content, &old, &new).unwrap_or((old, new));
    // A name is changed wherever it stands; of a longer text one place is meant.
    if content.matches(&old).count() > 1 && !old.trim().contains(char::is_whitespace) {
        input.insert("replace_all".into(), true.into());
    }
    input.insert("old".into(), old.into());
    input.insert("new".into(), new.into());
    ("edit_file", Value::Object(input))
}

/// The same edit with the white space of the file: its lines, compared without indentation, stand there once.
fn fitted(content: &str, old: &str, new: &str) -> Option<(String, String)> {
    let wanted: Vec<&str> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines: Vec<&str> = content.lines().collect();
    let full: Vec<usize> = (0..lines.len()).filter(|&at| !lines[at].trim().is_empty()).collect();
    let fits = |at: &usize| {
        let window = full.get(*at..*at + wanted.len());
        window.is_some_and(|window| {
            window.iter().zip(&wanted).all(|(&n, line)| lines[n].trim() == *line)
        })
    };
    let mut places = (0..full.len()).filter(fits);
    let (at, None) = (places.next()?, places.next()) else { return None };
    let (first, last) = (full[at], full[at + wanted.len() - 1]);
    let found = lines[first..=last].join("\n");
    let given = old.lines().find(|line| !line.trim().is_empty())?;
    Some((found, indented(new.trim_matches('\n'), indent(given), indent(lines[first]))))
}

/// The same edit of a whole definition: `old` is its first line alone, and `new` has a body of its own, which
/// would stand before the old one.
fn whole_definition(content: &str, old: &str, new: &str) -> Option<(String, String)> {
    let head = old.trim();
    let alone = !head.contains('\n') && code::head(head).is_some() && head.ends_with([':', '{']);
    let body = new.trim().strip_prefix(head).map(str::trim);
    if !alone || body.is_none_or(str::is_empty) {
        return None;
    }
    let lines: Vec<&str> = content.lines().collect();
    let mut starts = (0..lines.len()).filter(|&n| lines[n].trim() == head);
    let (start, None) = (starts.next()?, starts.next()) else { return None };
    let end = code::end_of(&lines, start);
    let given = new.lines().find(|line| !line.trim().is_empty())?;
    let new = indented(new.trim_matches('\n').trim_end(), indent(given), indent(lines[start]));
    // What was only added behind the first line keeps the rest.
    let keeps = lines[start + 1..=end].iter().all(|line| new.contains(line.trim()));
    (end > start && !keeps).then(|| (lines[start..=end].join("\n"), new))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// A text whose first indentation is put in place of another.
pub(super) fn indented(text: &str, given: &str, instead: &str) -> String {
    let line = |line: &str| match line.strip_prefix(given) {
        Some(rest) if !line.trim().is_empty() => format!("{instead}{rest}"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
