//! The results of calls that a client ran.

use quintet_kernel::CallId;
use quintet_kernel::tool::Outcome;
use serde_json::{Map, Value};

use crate::windie::decode::REF_LIMIT;
use crate::windie::fields::{ENTRIES_LIMIT, Object};

/// The longest result, in bytes; the rest is cut.
const OUTPUT_LIMIT: usize = 64 * 1024;
/// The tags around the state of the desktop in a result.
const STATE: (&str, &str) = ("\n\n<system_state>\n", "\n</system_state>");

/// The result of one call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolResult {
    pub(crate) call: String,
    pub(crate) outcome: Outcome,
    pub(crate) picture: Option<Picture>,
}

/// A picture of the screen after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picture {
    /// The id of an artifact.
    Artifact(String),
    /// In base64, perhaps as a data URL.
    Inline(String),
}

/// The results of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BundleResult {
    pub(crate) bundle: String,
    pub(crate) steps: Vec<Step>,
    pub(crate) error: Option<String>,
    pub(crate) state: Option<Desktop>,
    pub(crate) picture: Option<Picture>,
    /// Data of the client that is stored with the result.
    pub(crate) front_end_data: Value,
}

/// The result of one call of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) tool: Option<String>,
    pub(crate) ok: bool,
    pub(crate) output: String,
    pub(crate) error: Option<String>,
}

/// The outcome of one call of a bundle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepOutcome {
    pub(crate) call: CallId,
    pub(crate) outcome: Outcome,
    /// True for the last call that ran, after which the picture was taken.
    pub(crate) pictured: bool,
}

/// The state of the desktop in a result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Desktop {
    pub(crate) active_window: Option<String>,
    pub(crate) mouse_position: Option<String>,
}

impl ToolResult {
    pub(crate) fn of(payload: &Object<'_>) -> Self {
        let call = payload.needed("request_id").solid_text(REF_LIMIT).unwrap_or_default();
        let ok = payload.needed("success").flag().unwrap_or_default();
        let data = payload.object("data");
        let output = data.as_ref().map(|data| match data.member("output") {
            Some(output) => as_text(output),
            None => {
                data.fault(&["output"], "missing", "Field required");
                String::new()
            }
        });
        let state = data.as_ref().and_then(desktop);
        let picture = data.as_ref().and_then(picture);
        let mut outcome =
            outcome(ok, &output.unwrap_or_default(), text(payload, "error"), state.as_ref());
        outcome.front_end_data = data.as_ref().map(front_end_data).unwrap_or_default();
        Self { call, outcome, picture }
    }
}

impl BundleResult {
    pub(crate) fn of(payload: &Object<'_>) -> Self {
        let bundle = payload.needed("bundle_id").solid_text(REF_LIMIT).unwrap_or_default();
        let statuses = [("success", ()), ("partial_failure", ()), ("failure", ())];
        payload.needed("status").choice(&statuses);
        Self {
            bundle,
            steps: payload.needed("step_results").objects(ENTRIES_LIMIT, step),
            error: text(payload, "error"),
            state: desktop(payload),
            picture: picture(payload),
            front_end_data: front_end_data(payload),
        }
    }

    /// The outcomes of the calls of the bundle, in order. Each call has the next step of its tool; a call
    /// without one was not run.
    pub(crate) fn outcomes(&self, calls: &[(CallId, String)]) -> Vec<StepOutcome> {
        let mut steps = self.steps.as_slice();
        let mut next = |tool: &String| {
            let fits = |step: &Step| step.tool.as_ref().is_none_or(|of| of == tool);
            let n = steps.iter().position(fits)?;
            let step = &steps[n];
            steps = &steps[n + 1..];
            Some(step)
        };
        let matched: Vec<Option<&Step>> = calls.iter().map(|(_, tool)| next(tool)).collect();
        let last = matched.iter().rposition(Option::is_some);
        let each = calls.iter().zip(matched).enumerate();
        each.map(|(n, ((call, tool), step))| {
            let pictured = Some(n) == last;
            let state = self.state.as_ref().filter(|_| pictured);
            let mut outcome = step.map_or_else(|| self.not_run(), |step| step.outcome(tool, state));
            if pictured {
                outcome.front_end_data = self.front_end_data.clone();
            }
            StepOutcome { call: call.clone(), outcome, pictured }
        })
        .collect()
    }

    fn not_run(&self) -> Outcome {
        match &self.error {
            Some(error) => Outcome::failure(format!("not run: {error}")),
            None => Outcome::failure("not run"),
        }
    }
}

impl Step {
    fn outcome(&self, tool: &str, state: Option<&Desktop>) -> Outcome {
        let output = if self.ok && self.output.trim().is_empty() {
            format!("Tool {tool} executed successfully (no output).")
        } else {
            self.output.clone()
        };
        outcome(self.ok, &output, self.error.clone(), state)
    }
}

fn step(step: &Object<'_>) -> Step {
    let status = step.member("status").and_then(Value::as_str);
    Step {
        tool: text(step, "tool"),
        ok: matches!(status, Some("ok" | "success")),
        output: step.member("output").map(output).unwrap_or_default(),
        error: text(step, "error"),
    }
}

/// A member as text, unless it is empty.
fn text(object: &Object<'_>, name: &str) -> Option<String> {
    object.member(name).map(as_text).filter(|text| !text.is_empty())
}

/// The output of a step: text, or an object with text in one of its members, without its picture.
fn output(value: &Value) -> String {
    let Value::Object(members) = value else { return as_text(value) };
    let text = ["output", "message", "error"].iter().find_map(|name| members.get(*name)?.as_str());
    match text.filter(|text| !text.trim().is_empty()) {
        Some(text) => as_text(&text.into()),
        None => {
            let mut members = members.clone();
            members.remove("screenshot");
            as_text(&Value::Object(members))
        }
    }
}

/// The state of the desktop, as far as models are sent it.
fn desktop(data: &Object<'_>) -> Option<Desktop> {
    let state = data.object("system_state")?;
    let state = Desktop {
        active_window: text(&state, "active_window"),
        mouse_position: text(&state, "mouse_position"),
    };
    Some(state).filter(|state| *state != Desktop::default())
}

/// The data that is stored for clients and not sent to models: attachments, details of the screenshot and the
/// desktop. Without inline pictures, and only if it is not too long.
pub(crate) fn front_end_data(data: &Object<'_>) -> Value {
    let mut kept = Map::new();
    for name in ["capture_meta", "system_state_internal"] {
        let object = data.object(name).map(|object| Value::Object(object.members().clone()));
        kept.extend(object.map(|object| (name.to_owned(), object)));
    }
    let shown = data.member("display_attachments").and_then(Value::as_array);
    let shown: Vec<Value> =
        shown.into_iter().flatten().filter(|shown| is_reference(shown)).cloned().collect();
    if !shown.is_empty() {
        kept.insert("display_attachments".into(), shown.into());
    }
    let kept = Value::Object(kept);
    if kept.as_object().is_some_and(Map::is_empty) || kept.to_string().len() > OUTPUT_LIMIT {
        Value::Null
    } else {
        kept
    }
}

/// True if an attachment refers to its content and does not contain it.
fn is_reference(attachment: &Value) -> bool {
    let inline = |value: &Value| value.as_str().is_some_and(|text| text.starts_with("data:"));
    attachment.as_object().is_some_and(|members| !members.values().any(inline))
}

/// The picture; an artifact takes precedence over an inline picture.
fn picture(data: &Object<'_>) -> Option<Picture> {
    let given = |text: &String| !text.trim().is_empty();
    let artifact = data.text("screenshot_ref", 0..=REF_LIMIT).filter(given);
    let inline = data.text("screenshot", 0..=usize::MAX).filter(given);
    artifact.map(Picture::Artifact).or(inline.map(Picture::Inline))
}

fn outcome(ok: bool, output: &str, error: Option<String>, state: Option<&Desktop>) -> Outcome {
    let output = cut(output);
    let error = error.map(|error| cut(&error));
    let shown = state.map(described).unwrap_or_default();
    match (ok, error, output.trim().is_empty()) {
        (true, ..) => Outcome::success(output + &shown),
        (false, Some(error), true) => Outcome::failed_with(format!("{error}{shown}"), error),
        (false, Some(error), false) if output.contains(&error) => {
            Outcome::failed_with(output + &shown, error)
        }
        (false, Some(error), false) => {
            Outcome::failed_with(format!("{error}\n{output}{shown}"), error)
        }
        (false, None, true) => Outcome::failure("the tool failed"),
        (false, None, false) => {
            let line = output.lines().next().unwrap_or_default().to_owned();
            Outcome::failed_with(output + &shown, line)
        }
    }
}

/// The state of the desktop as text for models.
fn described(state: &Desktop) -> String {
    let lines =
        [("active_window", &state.active_window), ("mouse_position", &state.mouse_position)];
    let line = |(name, value): (&str, &Option<String>)| {
        value.as_ref().map(|value| format!("{name}: {}", value.replace('\n', " ")))
    };
    let lines: Vec<String> = lines.into_iter().filter_map(line).collect();
    format!("{}{}{}", STATE.0, lines.join("\n"), STATE.1)
}

/// A result without the state of the desktop, and the active window.
pub(crate) fn without_desktop(text: &str) -> (&str, Option<&str>) {
    let parts = text.strip_suffix(STATE.1).and_then(|text| text.rsplit_once(STATE.0));
    let Some((output, state)) = parts else { return (text, None) };
    (output, state.lines().find_map(|line| line.strip_prefix("active_window: ")))
}

/// A value as text.
fn as_text(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.replace('\0', "")
}

fn cut(text: &str) -> String {
    if text.len() > OUTPUT_LIMIT {
        let end = text.floor_char_boundary(OUTPUT_LIMIT);
        format!("{}\n[the rest is left out]", &text[..end])
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests;
