//! Corrects calls that are nearly right, using the files that the model has read: small models copy
//! a line without its indentation, or change a file that they have not read.

use quintet_kernel::model::RawToolCall;
use serde_json::{Map, Value, json};

use super::code;
use super::request::{Request, plain_path};
use super::tools::{APPEND, RENAME};

/// Returns the corrected call.
pub(crate) fn repair(request: &Request, call: RawToolCall) -> RawToolCall {
    let Ok(Value::Object(mut input)) = serde_json::from_str(&call.arguments) else { return call };
    if call.tool == RENAME {
        let Some(command) = renamed(request, &input) else { return call };
        let arguments = json!({ "command": command }).to_string();
        return RawToolCall { tool: "shell".into(), arguments, ..call };
    }
    if call.tool == "search" {
        return RawToolCall { arguments: search(input).to_string(), ..call };
    }
    let Some(path) =
        input.get("path").and_then(Value::as_str).map(|path| plain_path(path).to_owned())
    else {
        return call;
    };
    let path = known_path(request, path);
    input.insert("path".into(), path.clone().into());
    let (tool, input) = match (call.tool.as_str(), request.files.get(&path)) {
        ("edit_file" | APPEND, None) => ("read_file", json!({ "path": path })),
        ("edit_file", Some(content)) => {
            let adds = request.says(&["add", "append"]);
            edit((&path, content), input, adds)
        }
        (APPEND, Some(content)) => appended(&path, content, &input),
        (other, _) => (other, Value::Object(input)),
    };
    RawToolCall { tool: tool.into(), arguments: input.to_string(), ..call }
}

/// The command that renames something in all files; `None` if the call is no rename.
fn renamed(request: &Request, input: &Map<String, Value>) -> Option<String> {
    let name = |key: &str| {
        let name = input.get(key)?.as_str()?.trim().trim_end_matches("()");
        let name =
            name.rsplit_once('.').filter(|(_, end)| is_ending(end)).map_or(name, |(stem, _)| stem);
        let plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        (plain && !name.is_empty()).then_some(name)
    };
    let (old, new) = (name("old")?, name("new")?);
    let moved = request.file_move(old, new).map(|command| format!("{command}; "));
    let moved = moved.unwrap_or_default();
    Some(format!(
        "{moved}grep -rlwI --exclude-dir=.git {old} . | xargs -r sed -i 's/\\b{old}\\b/{new}/g'; \
         grep -rnwI --exclude-dir=.git {new} ."
    ))
}

/// True for the ending of a file's name.
fn is_ending(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.chars().all(|letter| letter.is_ascii_alphanumeric())
}

/// Makes a search for several words find the lines with any of them.
fn search(mut input: Map<String, Value>) -> Value {
    let query = input.get("query").and_then(Value::as_str).unwrap_or_default();
    let words: Vec<&str> = query.split_whitespace().collect();
    let plain = |word: &&str| word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    if words.len() > 1 && words.iter().all(plain) {
        input.insert("query".into(), words.join("|").into());
        input.insert("regex".into(), true.into());
        input.insert("ignore_case".into(), true.into());
    }
    Value::Object(input)
}

/// An edit that inserts a text after the last lines of a file: as many lines as are needed to be
/// unique.
fn appended(path: &str, content: &str, input: &Map<String, Value>) -> (&'static str, Value) {
    let text = input.get("text").and_then(Value::as_str).unwrap_or_default().trim_matches('\n');
    let end = content.trim_end();
    let starts = end.match_indices('\n').map(|(at, _)| at + 1).collect::<Vec<_>>();
    let once = |start: &&usize| content.matches(&end[**start..]).count() == 1;
    let start = starts.iter().rev().find(once).copied().unwrap_or(0);
    let imports: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if !end.is_empty() && !imports.is_empty() && imports.iter().all(|line| code::is_import(line)) {
        let content = code::with_imports(content, &imports);
        return ("write_file", json!({ "path": path, "content": content }));
    }
    if end.is_empty() {
        return ("write_file", json!({ "path": path, "content": format!("{text}\n") }));
    }
    // Python definitions are two lines apart, everything else one.
    let gap = if path.ends_with(".py") { "\n\n\n" } else { "\n\n" };
    let gap = if end.contains('\n') || path.ends_with(".py") { gap } else { "\n" };
    let old = &end[start..];
    ("edit_file", json!({ "path": path, "old": old, "new": format!("{old}{gap}{text}") }))
}

/// The full path of a known file, if only its name is given.
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

fn edit(
    (path, content): (&str, &str),
    mut input: Map<String, Value>,
    adds: bool,
) -> (&'static str, Value) {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (old, new) = (text("old"), text("new"));
    if old.trim().is_empty() {
        input.insert("text".into(), new.into());
        return appended(path, content, &input);
    }
    // An addition must not replace existing text.
    if adds && is_other_definition(&old, &new) {
        input.insert("text".into(), new.into());
        return appended(path, content, &input);
    }
    let (old, new) = if content.contains(&old) {
        (old, new)
    } else {
        fitted(content, &old, &new).unwrap_or((old, new))
    };
    let (old, new) = whole_definition(content, &old, &new).unwrap_or((old, new));
    let new = with_lost_body(&old, &new).unwrap_or(new);
    // The new text is there already: the tool reports that, and the model corrects itself.
    let old = if new.contains(&old) && content.contains(&new) { new.clone() } else { old };
    // An identifier is replaced everywhere; a longer text in one place only.
    if content.matches(&old).count() > 1 && !old.trim().contains(char::is_whitespace) {
        input.insert("replace_all".into(), true.into());
    }
    input.insert("old".into(), old.into());
    input.insert("new".into(), new.into());
    ("edit_file", Value::Object(input))
}

/// True if the new text defines something other than the old one.
fn is_other_definition(old: &str, new: &str) -> bool {
    let head = |text: &str| code::head(text.trim().lines().next()?).map(str::to_owned);
    head(new).is_some_and(|new| head(old).is_some_and(|old| old != new))
}

/// The same edit with the white space of the file: its lines, compared without white space, occur
/// once.
fn fitted(content: &str, old: &str, new: &str) -> Option<(String, String)> {
    let wanted = without_whitespace(old);
    let lines: Vec<&str> = content.lines().collect();
    let mut places =
        (0..lines.len()).filter_map(|first| Some((first, fit(&lines[first..], &wanted)?)));
    let ((first, count), None) = (places.next()?, places.next()) else { return None };
    let found = lines[first..first + count].join("\n");
    let given = old.lines().find(|line| !line.trim().is_empty())?;
    Some((found, indented(new.trim_matches('\n'), indent(given), indent(lines[first]))))
}

/// Number of lines, from the first on, that equal a text when compared without white space.
fn fit(lines: &[&str], wanted: &str) -> Option<usize> {
    let mut rest = wanted;
    for (n, line) in lines.iter().enumerate() {
        let line = without_whitespace(line);
        if n == 0 && line.is_empty() {
            return None;
        }
        rest = rest.strip_prefix(&line)?;
        if rest.is_empty() {
            return Some(n + 1);
        }
    }
    None
}

fn without_whitespace(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The same edit of a whole definition: `old` is only its first line, and `new` has its own body,
/// which would otherwise precede the old one.
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
    // Lines that were only added after the first line keep the rest.
    let keeps = lines[start + 1..=end].iter().all(|line| new.contains(line.trim()));
    (end > start && !keeps).then(|| (lines[start..=end].join("\n"), new))
}

/// The new text of a definition with its old body appended, if the new body is only an `if` before
/// it and contains nothing of the old one.
fn with_lost_body(old: &str, new: &str) -> Option<String> {
    let (head, body) = old.trim_end().split_once('\n')?;
    let (new_head, added) = new.trim_end().split_once('\n')?;
    let depth = |line: &str| indent(line).len();
    let is_guard = |line: &&str| line.trim_start().starts_with("if ");
    let inside = added.lines().filter(|line| !line.trim().is_empty());
    let (first, last) = (inside.clone().next()?, inside.clone().next_back()?);
    let guarded = is_guard(&first)
        && depth(last) > depth(first)
        && inside.clone().all(|line| depth(line) > depth(first) || is_guard(&line));
    let lost = body.lines().all(|line| !added.contains(line.trim()) || line.trim().is_empty());
    let same_head = code::head(head).is_some() && code::head(head) == code::head(new_head);
    (guarded && lost && same_head && head.trim_end().ends_with(':'))
        .then(|| format!("{new_head}\n{added}\n{body}"))
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// A text with its base indentation replaced.
pub(super) fn indented(text: &str, given: &str, instead: &str) -> String {
    let line = |line: &str| match line.strip_prefix(given) {
        Some(rest) if !line.trim().is_empty() => format!("{instead}{rest}"),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
