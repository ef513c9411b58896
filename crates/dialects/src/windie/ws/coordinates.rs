//! Finds places on the screen for calls that leave this to the daemon.
//!
//! A call of `mouse_control` or `scroll_control` may have `find_coordinates_by` instead of `x` and `y`. The
//! place is then searched in the newest picture of the session before the client gets the call; if it is not
//! found, the call fails with the candidates, and the client never runs it.

use std::time::Duration;

use quintet_kernel::port::SenseError;
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, SessionId, pictures};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinSet;

use super::Connection;
use crate::windie::agent::builtin_tools;
use crate::windie::artifacts::is_own;
use crate::windie::encode::turn_frames::Frame;
use crate::windie::ocr_rows::{THRESHOLD, TextRow, ranked, resolve, rows};
use crate::windie::serve::AppState;

/// Time limit of the search for the places of one frame.
const FIND_TIMEOUT: Duration = Duration::from_secs(60);
const NOT_RUN: &str = "not run: the place of an earlier call was not found";

/// Searches that are running, each for one frame.
pub(super) type Searches = JoinSet<Located>;

/// A frame after its search.
pub(super) struct Located {
    pub(super) session: SessionId,
    pub(super) frame: Frame,
    /// Calls that failed, because their places were not found.
    pub(super) failed: Vec<(CallId, Outcome)>,
}

impl Connection {
    /// The calls of a frame for which the daemon finds places; `None` if it has nothing to find.
    pub(super) fn grounded_calls(&self, frame: &Frame) -> Option<Vec<CallId>> {
        let mut calls = frame.handover.as_ref()?.calls.clone();
        calls.retain(|pending| self.is_grounded(&pending.tool));
        let is_open =
            |input: &Value| PLACES.iter().any(|place| !matches!(wanted(input, place), Ok(None)));
        let is_open = calls.iter().any(|pending| is_open(&pending.input));
        is_open.then(|| calls.into_iter().map(|pending| pending.call).collect())
    }

    /// Starts the search for a frame; [`Connection::serve`] receives the result.
    pub(super) fn find_places(&mut self, session: SessionId, frame: Frame, grounded: Vec<CallId>) {
        self.searches.spawn(locate(self.app.clone(), session, frame, grounded));
    }

    /// True if the daemon finds places for a tool. The client's own tools take precedence.
    fn is_grounded(&self, tool: &str) -> bool {
        let provided = self.agent.manifest.as_ref().and_then(|manifest| manifest.tool(tool));
        let built_in = || builtin_tools::tool(tool).is_some_and(|tool| tool.grounded);
        provided.map_or_else(built_in, |tool| tool.grounded)
    }
}

/// The next search that finished, `None` if it panicked; waits while no search is running.
pub(super) async fn next(searches: &mut Searches) -> Option<Located> {
    match searches.join_next().await {
        Some(located) => {
            located.inspect_err(|error| tracing::error!(%error, "finding places broke off")).ok()
        }
        None => std::future::pending().await,
    }
}

/// A place that a call needs: the prefix of its arguments, and the argument that describes it.
struct Place {
    prefix: &'static str,
    description: &'static str,
}

/// The place of an action, and the place where a drag ends.
const PLACES: [Place; 2] = [
    Place { prefix: "", description: "source_description" },
    Place { prefix: "drag_to_", description: "destination_description" },
];

impl Place {
    fn argument(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

/// How a place is found.
#[derive(Debug, PartialEq, Eq)]
enum PlaceQuery {
    /// By its text.
    Text(String),
    /// By the id that an earlier error gave to its text.
    Candidate(String),
    /// By a description.
    Description(String),
}

/// How a place is to be found; `None` if its coordinates are given. Fails if the arguments do not say
/// what to look for.
fn wanted(arguments: &Value, place: &Place) -> Result<Option<PlaceQuery>, String> {
    let given = |name: &str| {
        let text = arguments[name].as_str().map(str::trim).filter(|text| !text.is_empty());
        text.map(String::from)
    };
    let [method, text, candidate] =
        ["find_coordinates_by", "ocr_text", "candidate_id"].map(|name| place.argument(name));
    match arguments[&method].as_str() {
        Some("ocr") => match (given(&candidate), given(&text)) {
            (Some(id), _) => Ok(Some(PlaceQuery::Candidate(id))),
            (None, Some(text)) => Ok(Some(PlaceQuery::Text(text))),
            (None, None) => Err(format!("{text} or {candidate} is required when {method} is ocr")),
        },
        Some("prediction") => match given(place.description) {
            Some(description) => Ok(Some(PlaceQuery::Description(description))),
            None => Err(format!("{} is required when {method} is prediction", place.description)),
        },
        Some(_) | None => Ok(None),
    }
}

/// Finds the places of a frame's grounded calls. The first call whose place is not found fails, and so does
/// every call after it, because the model meant them as a sequence.
async fn locate(
    app: AppState,
    session: SessionId,
    mut frame: Frame,
    grounded: Vec<CallId>,
) -> Located {
    let mut calls = frame.handover.as_ref().map(|it| it.calls.clone()).unwrap_or_default();
    let screen =
        Screen { app: &app, session: &session, picture: OnceCell::new(), rows: OnceCell::new() };
    let mut failed: Vec<(CallId, Outcome)> = Vec::new();
    let search = async {
        for pending in &mut calls {
            let outcome = if !failed.is_empty() {
                Err(Outcome::failure(NOT_RUN))
            } else if grounded.contains(&pending.call) {
                screen.fill_in(&pending.tool, &mut pending.input).await
            } else {
                Ok(())
            };
            failed.extend(outcome.err().map(|outcome| (pending.call.clone(), outcome)));
        }
    };
    if tokio::time::timeout(FIND_TIMEOUT, search).await.is_err() {
        let seconds = FIND_TIMEOUT.as_secs();
        let late =
            Outcome::failure(format!("finding the place took longer than {seconds} seconds"));
        failed = calls.iter().map(|pending| (pending.call.clone(), late.clone())).collect();
    }
    drop(screen);
    calls.retain(|pending| failed.iter().all(|(call, _)| *call != pending.call));
    frame.hand_over(calls);
    Located { session, frame, failed }
}

/// The newest picture of a session and the text on it, each read once.
struct Screen<'a> {
    app: &'a AppState,
    session: &'a SessionId,
    picture: OnceCell<Picture>,
    rows: OnceCell<Vec<TextRow>>,
}

struct Picture {
    /// The name of its artifact, which clients know, or else the id of its content.
    source: String,
    bytes: Vec<u8>,
}

impl Screen<'_> {
    /// Replaces the arguments that say how to find places by coordinates.
    async fn fill_in(&self, tool: &str, arguments: &mut Value) -> Result<(), Outcome> {
        for place in &PLACES {
            let Some(wanted) = wanted(arguments, place).map_err(Outcome::failure)? else {
                continue;
            };
            let (x, y) = self.find(tool, wanted).await?;
            let Some(members) = arguments.as_object_mut() else { continue };
            members.remove(place.description);
            for name in ["find_coordinates_by", "ocr_text", "candidate_id", "model_name"] {
                members.remove(&place.argument(name));
            }
            members.insert(place.argument("x"), x.into());
            members.insert(place.argument("y"), y.into());
        }
        Ok(())
    }

    async fn find(&self, tool: &str, wanted: PlaceQuery) -> Result<(u32, u32), Outcome> {
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

    async fn find_text(&self, tool: &str, text: String) -> Result<(u32, u32), Outcome> {
        let (rows, query) = (self.rows().await?.clone(), text.clone());
        let ranked = tokio::task::spawn_blocking(move || ranked(&query, &rows)).await;
        let ranked = ranked.map_err(failure)?;
        let error = match resolve((&text, THRESHOLD), &ranked, &self.picture().await?.source) {
            Ok(row) => return Ok(row.area.center()),
            Err(error) => error,
        };
        let Some(mut payload) = error.payload else {
            return Err(Outcome::failure(error.message));
        };
        payload["retry_tool"] = json!(tool);
        let advice = format!(
            "{}. Call {tool} again with find_coordinates_by \"ocr\" and the candidate_id of \
             the text that is meant.\nresolver_payload: {payload}",
            error.message
        );
        Err(Outcome::failed_with(advice, error.message))
    }

    async fn predict(&self, description: String) -> Result<(u32, u32), Outcome> {
        let bytes = self.picture().await?.bytes.clone();
        let found = self.app.ports.vision.locate(bytes, description.clone(), 1).await;
        let found = found.map_err(|error| unavailable("Vision", &error))?.value;
        found.first().map(|target| (target.x, target.y)).ok_or_else(|| {
            Outcome::failure(format!("Vision model could not identify '{description}'"))
        })
    }

    async fn rows(&self) -> Result<&Vec<TextRow>, Outcome> {
        let read = async || {
            let Picture { source, bytes } = self.picture().await?;
            let text = self.app.ports.ocr.read(bytes.clone()).await;
            let text = text.map_err(|error| unavailable("OCR", &error))?;
            Ok(rows(source, text.lines))
        };
        self.rows.get_or_try_init(read).await
    }

    async fn picture(&self) -> Result<&Picture, Outcome> {
        let read = async || {
            let ports = &self.app.ports;
            let state = ports.sessions.view(self.session).await.map_err(failure)?;
            let picture = pictures::newest_picture(&state).ok_or_else(|| {
                Outcome::failure("there is no screenshot yet: take one with `screenshot` first")
            })?;
            let bytes = ports.blobs.get(&picture.blob).await.map_err(failure)?;
            let is_artifact = is_own(&picture.name);
            let source = if is_artifact { picture.name } else { picture.blob.to_string() };
            Ok(Picture { source, bytes })
        };
        self.picture.get_or_try_init(read).await
    }
}

fn failure(error: impl std::fmt::Display) -> Outcome {
    Outcome::failure(error.to_string())
}

fn unavailable(service: &str, error: &SenseError) -> Outcome {
    Outcome::failure(format!(
        "{service} could not find the place: {error}. Give the coordinates in pixels, or take another \
         way"
    ))
}

#[cfg(test)]
mod tests;
