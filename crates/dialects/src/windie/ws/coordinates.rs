//! Finds places on the screen for calls that leave this to the daemon.
//!
//! A call of `mouse_control` or `scroll_control` may have `find_coordinates_by` instead of `x` and `y`. The
//! place is then searched in the newest picture of the session before the client gets the call; if it is not
//! found, the call fails with the candidates, and the client never runs it.

use std::time::Duration;

use quintet_kernel::message::CallArtifact;
use quintet_kernel::port::SenseError;
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, SessionId, pictures};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::Connection;
use crate::windie::agent::builtin_tools;
use crate::windie::artifacts::is_own;
use crate::windie::encode::turn_frames::Frame;
use crate::windie::ocr_rows::{THRESHOLD, TextRow, ranked, resolve, rows};
use crate::windie::serve::AppState;

/// How long finding the places of a frame may take.
const FIND_TIMEOUT: Duration = Duration::from_secs(60);
const NOT_RUN: &str = "not run: the place of an earlier call was not found";

/// Frames whose places are being looked for.
pub(super) type Searches = JoinSet<Located>;

/// A frame whose places were looked for.
pub(super) struct Located {
    pub(super) session: SessionId,
    pub(super) frame: Frame,
    /// Calls that are over, because their places were not found.
    pub(super) failed: Vec<(CallId, Outcome)>,
}

/// A message whose calls say how to find places.
pub(super) struct PlaceSearch {
    message: Value,
    /// The tools that the daemon finds places for.
    grounded: Vec<String>,
}

impl Connection {
    /// What a frame leaves to the daemon to find before it is handed over; nothing for nearly all.
    pub(super) fn places_in(&self, frame: &Frame) -> Option<PlaceSearch> {
        if frame.hands.is_none() || !frame.text.contains("find_coordinates_by") {
            return None;
        }
        let mut message: Value = serde_json::from_str(&frame.text).ok()?;
        let mut steps = steps(&mut message);
        steps.retain(|step| self.is_grounded(&step.tool));
        let is_open = |step: &FrameCall<'_>| {
            PLACES.iter().any(|names| !matches!(wanted(step.arguments, names), Ok(None)))
        };
        let is_open = steps.iter().any(is_open);
        let grounded = steps.into_iter().map(|step| step.tool).collect();
        is_open.then_some(PlaceSearch { message, grounded })
    }

    /// Looks for the places of a frame; [`Connection::serve`] goes on with it.
    pub(super) fn find_places(&mut self, session: &SessionId, frame: Frame, search: PlaceSearch) {
        let (app, session) = (self.app.clone(), session.clone());
        self.searches.spawn(async move { locate(&app, session, frame, search).await });
    }

    /// True if the daemon finds places for a tool. What the client says of its own tools counts first.
    fn is_grounded(&self, tool: &str) -> bool {
        let brought = self.agent.manifest.as_ref().and_then(|manifest| manifest.tool(tool));
        let built_in = || builtin_tools::tool(tool).is_some_and(|tool| tool.grounded);
        brought.map_or_else(built_in, |tool| tool.grounded)
    }
}

/// The next frame whose places were looked for, nothing if that broke off; waits while there is none.
pub(super) async fn next(searches: &mut Searches) -> Option<Located> {
    match searches.join_next().await {
        Some(located) => {
            located.inspect_err(|error| tracing::error!(%error, "finding places broke off")).ok()
        }
        None => std::future::pending().await,
    }
}

/// The arguments that say where.
struct Names {
    method: &'static str,
    text: &'static str,
    candidate: &'static str,
    description: &'static str,
    model: &'static str,
    x: &'static str,
    y: &'static str,
}

/// Where an action is, and where a drag ends.
const PLACES: [Names; 2] = [
    Names {
        method: "find_coordinates_by",
        text: "ocr_text",
        candidate: "candidate_id",
        description: "source_description",
        model: "model_name",
        x: "x",
        y: "y",
    },
    Names {
        method: "drag_to_find_coordinates_by",
        text: "drag_to_ocr_text",
        candidate: "drag_to_candidate_id",
        description: "destination_description",
        model: "drag_to_model_name",
        x: "drag_to_x",
        y: "drag_to_y",
    },
];

/// How a place is found.
#[derive(Debug, PartialEq, Eq)]
enum PlaceQuery {
    /// By the text there.
    Text(String),
    /// By the id that an earlier error gave a text.
    Candidate(String),
    /// By what it looks like.
    Description(String),
}

/// How a place is to be found; nothing if its coordinates are given. Fails if the arguments do not say
/// what to look for.
fn wanted(arguments: &Value, names: &Names) -> Result<Option<PlaceQuery>, String> {
    let given = |name: &str| {
        let text = arguments[name].as_str().map(str::trim).filter(|text| !text.is_empty());
        text.map(String::from)
    };
    match arguments[names.method].as_str() {
        Some("ocr") => match (given(names.candidate), given(names.text)) {
            (Some(id), _) => Ok(Some(PlaceQuery::Candidate(id))),
            (None, Some(text)) => Ok(Some(PlaceQuery::Text(text))),
            (None, None) => Err(format!(
                "{} or {} is required when {} is ocr",
                names.text, names.candidate, names.method
            )),
        },
        Some("prediction") => match given(names.description) {
            Some(description) => Ok(Some(PlaceQuery::Description(description))),
            None => Err(format!(
                "{} is required when {} is prediction",
                names.description, names.method
            )),
        },
        Some(_) | None => Ok(None),
    }
}

/// A call in a frame.
struct FrameCall<'a> {
    call: CallId,
    tool: String,
    arguments: &'a mut Value,
}

/// The calls of a message, whether it hands over one or several.
fn steps(message: &mut Value) -> Vec<FrameCall<'_>> {
    let Some(payload) = message.get_mut("payload") else { return Vec::new() };
    if payload.get("tools").is_some() {
        let tools = payload["tools"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
        return tools.iter_mut().filter_map(|tool| step(tool, "name", "args")).collect();
    }
    step(payload, "tool_name", "parameters").into_iter().collect()
}

fn step<'a>(value: &'a mut Value, tool: &str, arguments: &str) -> Option<FrameCall<'a>> {
    let call = CallId::parse(value.get("tool_call_id")?.as_str()?)?;
    let tool = value.get(tool)?.as_str()?.to_owned();
    Some(FrameCall { call, tool, arguments: value.get_mut(arguments)? })
}

/// Finds the places of a frame's calls, of those tools that have them found. The first call whose place
/// is not found fails, and so does every call after it: the model meant them to follow each other.
async fn locate(
    app: &AppState,
    session: SessionId,
    mut frame: Frame,
    search: PlaceSearch,
) -> Located {
    let PlaceSearch { mut message, grounded } = search;
    let mut screen = Screen { app, session: &session, picture: None, rows: None };
    let mut failed: Vec<(CallId, Outcome)> = Vec::new();
    let finding = async {
        for FrameCall { call, tool, arguments } in steps(&mut message) {
            let outcome = match (failed.is_empty(), grounded.contains(&tool)) {
                (false, _) => Err(Outcome::failure(NOT_RUN)),
                (true, true) => screen.fill_in(&tool, arguments).await,
                (true, false) => Ok(()),
            };
            failed.extend(outcome.err().map(|outcome| (call, outcome)));
        }
    };
    if tokio::time::timeout(FIND_TIMEOUT, finding).await.is_err() {
        let seconds = FIND_TIMEOUT.as_secs();
        let late =
            Outcome::failure(format!("finding the place took longer than {seconds} seconds"));
        let calls = frame.hands.as_ref().map(|hands| hands.calls.clone()).unwrap_or_default();
        failed = calls.into_iter().map(|call| (call, late.clone())).collect();
    }
    leave_out(&mut frame, message, &failed);
    Located { session, frame, failed }
}

/// Puts a message into its frame, without the calls that are over.
fn leave_out(frame: &mut Frame, mut message: Value, failed: &[(CallId, Outcome)]) {
    let is_over = |id: &str| failed.iter().any(|(call, _)| call.as_str() == id);
    let Some(hands) = &mut frame.hands else { return };
    hands.calls.retain(|call| !is_over(call.as_str()));
    if hands.calls.is_empty() {
        return frame.show();
    }
    if let Some(Value::Array(tools)) = message.pointer_mut("/payload/tools") {
        tools.retain(|tool| !tool["tool_call_id"].as_str().is_some_and(is_over));
    }
    frame.text = message.to_string();
}

/// The newest picture of a session, and what was read on it so far.
struct Screen<'a> {
    app: &'a AppState,
    session: &'a SessionId,
    picture: Option<(CallArtifact, Vec<u8>)>,
    rows: Option<Vec<TextRow>>,
}

impl Screen<'_> {
    /// Replaces what says how to find places by their coordinates.
    async fn fill_in(&mut self, tool: &str, arguments: &mut Value) -> Result<(), Outcome> {
        for names in &PLACES {
            let Some(wanted) = wanted(arguments, names).map_err(Outcome::failure)? else {
                continue;
            };
            let (x, y) = self.find(tool, wanted).await?;
            let Some(members) = arguments.as_object_mut() else { continue };
            let spent = [names.method, names.text, names.candidate, names.description, names.model];
            members.retain(|name, _| !spent.contains(&name.as_str()));
            members.insert(names.x.into(), x.into());
            members.insert(names.y.into(), y.into());
        }
        Ok(())
    }

    async fn find(&mut self, tool: &str, wanted: PlaceQuery) -> Result<(u32, u32), Outcome> {
        match wanted {
            PlaceQuery::Candidate(id) => {
                let row = self.rows().await?.iter().find(|row| row.candidate_id == id);
                row.map(|row| row.area.center()).ok_or_else(|| {
                    Outcome::failure(format!(
                        "Could not find OCR candidate_id '{id}' on the newest screenshot: the screen \
                         has changed, find the text again"
                    ))
                })
            }
            PlaceQuery::Text(text) => self.find_text(tool, text).await,
            PlaceQuery::Description(description) => self.predict(description).await,
        }
    }

    async fn find_text(&mut self, tool: &str, text: String) -> Result<(u32, u32), Outcome> {
        let (rows, source) = (self.rows().await?.to_vec(), self.source().await?);
        let query = text.clone();
        let ranked = tokio::task::spawn_blocking(move || ranked(&query, &rows)).await;
        let ranked = ranked.map_err(|error| Outcome::failure(error.to_string()))?;
        match resolve((&text, THRESHOLD), &ranked, &source) {
            Ok(row) => Ok(row.area.center()),
            Err(error) => {
                let Some(mut payload) = error.payload else {
                    return Err(Outcome::failure(error.message));
                };
                payload["retry_tool"] = json!(tool);
                let told = format!(
                    "{}. Call {tool} again with find_coordinates_by \"ocr\" and the candidate_id of \
                     the text that is meant.\nresolver_payload: {payload}",
                    error.message
                );
                Err(Outcome::failed_with(told, error.message))
            }
        }
    }

    async fn predict(&mut self, description: String) -> Result<(u32, u32), Outcome> {
        let bytes = self.picture().await?.1.clone();
        let vision = &self.app.ports.vision;
        let found = vision.locate(bytes, description.clone(), 1).await;
        let found = found.map_err(|error| unavailable("Vision", &error))?.value;
        let best = found.first().map(|target| (target.x, target.y));
        best.ok_or_else(|| {
            Outcome::failure(format!("Vision model could not identify '{description}'"))
        })
    }

    /// The text on the picture, read once.
    async fn rows(&mut self) -> Result<&[TextRow], Outcome> {
        if self.rows.is_none() {
            let source = self.source().await?;
            let bytes = self.picture().await?.1.clone();
            let read = self.app.ports.ocr.read(bytes).await;
            let read = read.map_err(|error| unavailable("OCR", &error))?;
            self.rows = Some(rows(&source, read.lines));
        }
        Ok(self.rows.as_deref().unwrap_or_default())
    }

    /// The id of the picture: that of its artifact, so that clients know it, else that of its content.
    async fn source(&mut self) -> Result<String, Outcome> {
        let picture = &self.picture().await?.0;
        let is_artifact = is_own(&picture.name);
        Ok(if is_artifact { picture.name.clone() } else { picture.blob.to_string() })
    }

    async fn picture(&mut self) -> Result<&(CallArtifact, Vec<u8>), Outcome> {
        if self.picture.is_none() {
            let ports = &self.app.ports;
            let state = ports.sessions.view(self.session).await;
            let state = state.map_err(|error| Outcome::failure(error.to_string()))?;
            let picture = pictures::newest_picture(&state).ok_or_else(|| {
                Outcome::failure("there is no screenshot yet: take one with `screenshot` first")
            })?;
            let bytes = ports.blobs.get(&picture.blob).await;
            let bytes = bytes.map_err(|error| Outcome::failure(error.to_string()))?;
            self.picture = Some((picture, bytes));
        }
        self.picture.as_ref().ok_or_else(|| Outcome::failure("there is no screenshot"))
    }
}

fn unavailable(service: &str, error: &SenseError) -> Outcome {
    Outcome::failure(format!(
        "{service} could not find the place: {error}. Give the coordinates in pixels, or take another \
         way"
    ))
}

#[cfg(test)]
mod tests;
