//! The routes of the console.

use quintet_kernel::{CallId, RunId, SessionId, TurnId};

use super::decode::{Reply, Route};
use crate::transport::routes::{PathParameters, Refusals, Row};

/// All requests.
pub(super) const ROUTES: &[Row<Route, Reply>] = &[
    ("GET", "/", |_| Ok(Route::Page)),
    ("GET", "/sessions/{session}", |_| Ok(Route::Page)),
    ("GET", "/settings", |_| Ok(Route::Page)),
    ("GET", "/runs", |_| Ok(Route::Page)),
    ("GET", "/usage", |_| Ok(Route::Page)),
    ("GET", "/tools", |_| Ok(Route::Page)),
    ("GET", "/doctor", |_| Ok(Route::Page)),
    ("GET", "/app.js", |path| Ok(file(path))),
    ("GET", "/app.css", |path| Ok(file(path))),
    ("GET", "/icon.svg", |path| Ok(file(path))),
    ("GET", "/manifest.webmanifest", |path| Ok(file(path))),
    ("POST", "/login", |_| Ok(Route::Login)),
    ("GET", "/api/start", |_| Ok(Route::Start)),
    ("GET", "/api/models", |_| Ok(Route::Models)),
    ("GET", "/api/usage", |_| Ok(Route::Usage)),
    ("GET", "/api/overhead", |_| Ok(Route::Overhead)),
    ("GET", "/api/doctor", |_| Ok(Route::Doctor)),
    ("GET", "/api/configuration", |_| Ok(Route::Configuration)),
    ("GET", "/api/tool-servers", |_| Ok(Route::ToolServers)),
    ("POST", "/api/tool-servers/allow", |_| Ok(Route::AllowServers)),
    ("POST", "/api/tool-servers/disallow", |_| Ok(Route::DisallowServers)),
    ("GET", "/api/stream", |_| Ok(Route::Stream)),
    ("GET", "/api/search", |_| Ok(Route::Search)),
    ("GET", "/api/sessions", |_| Ok(Route::Sessions)),
    ("POST", "/api/sessions", |_| Ok(Route::CreateSession)),
    ("GET", "/api/sessions/{session}", |path| session(path).map(Route::Session)),
    ("GET", "/api/sessions/{session}/history", |path| session(path).map(Route::History)),
    ("GET", "/api/sessions/{session}/usage", |path| session(path).map(Route::SessionUsage)),
    ("GET", "/api/sessions/{session}/family", |path| session(path).map(Route::Family)),
    ("GET", "/api/sessions/{session}/prompt", |path| session(path).map(Route::Prompt)),
    ("GET", "/api/sessions/{session}/attachments/{name}", |path| {
        Ok(Route::Attachment(session(path)?, path.get("name").into()))
    }),
    ("GET", "/api/sessions/{session}/artifacts/{call}/{name}", |path| {
        Ok(Route::Artifact(session(path)?, call(path)?, path.get("name").into()))
    }),
    ("GET", "/api/sessions/{session}/attachments/{name}/text", |path| {
        Ok(Route::AttachmentText(session(path)?, path.get("name").into()))
    }),
    ("GET", "/api/sessions/{session}/artifacts/{call}/{name}/text", |path| {
        Ok(Route::ArtifactText(session(path)?, call(path)?, path.get("name").into()))
    }),
    ("GET", "/api/sessions/{session}/memory", |path| session(path).map(Route::Memory)),
    ("POST", "/api/sessions/{session}/messages", |path| session(path).map(Route::SendMessage)),
    ("POST", "/api/sessions/{session}/answer", |path| session(path).map(Route::AnswerQuestion)),
    ("POST", "/api/sessions/{session}/stop", |path| session(path).map(Route::Stop)),
    ("POST", "/api/sessions/{session}/fork", |path| session(path).map(Route::Fork)),
    ("POST", "/api/sessions/{session}/model", |path| session(path).map(Route::ChooseModel)),
    ("POST", "/api/sessions/{session}/compact", |path| session(path).map(Route::Compact)),
    ("POST", "/api/sessions/{session}/delete", |path| session(path).map(Route::Delete)),
    ("GET", "/api/sessions/{session}/turns/{turn}/changes", |path| {
        Ok(Route::Changes(session(path)?, turn(path)?))
    }),
    ("POST", "/api/sessions/{session}/turns/{turn}/undo", |path| {
        Ok(Route::Undo(session(path)?, turn(path)?))
    }),
    ("GET", "/api/sessions/{session}/turns/{turn}/undo", |path| {
        Ok(Route::TryUndo(session(path)?, turn(path)?))
    }),
    ("POST", "/api/sessions/{session}/turns/{turn}/redo", |path| {
        Ok(Route::Redo(session(path)?, turn(path)?))
    }),
    ("POST", "/api/sessions/{session}/turns/{turn}/retry", |path| {
        Ok(Route::Retry(session(path)?, turn(path)?))
    }),
    ("POST", "/api/sessions/{session}/turns/{turn}/withdraw", |path| {
        Ok(Route::Withdraw(session(path)?, turn(path)?))
    }),
    ("POST", "/api/transcribe", |_| Ok(Route::Transcribe)),
    ("POST", "/api/speak", |_| Ok(Route::Speak)),
    ("GET", "/api/runs", |_| Ok(Route::Runs)),
    ("POST", "/api/runs", |_| Ok(Route::CreateRun)),
    ("POST", "/api/runs/{run}/control", |path| {
        let none = || Reply::new(404, format!("run not found: {}", path.get("run")));
        Ok(Route::ControlRun(RunId::parse(path.get("run")).ok_or_else(none)?))
    }),
];

/// The replies to other requests.
pub(super) const REFUSALS: &Refusals<Reply> = &Refusals {
    unknown_path: |path| Reply::new(404, format!("there is nothing at {path}")),
    wrong_method: |path, takes| Reply::new(405, format!("{path} takes {takes}")),
};

fn file(path: &PathParameters<'_>) -> Route {
    Route::File(path.full_path().into())
}

fn session(path: &PathParameters<'_>) -> Result<SessionId, Reply> {
    let id = path.get("session");
    SessionId::parse(id).ok_or_else(|| Reply::new(404, format!("session not found: {id}")))
}

fn call(path: &PathParameters<'_>) -> Result<CallId, Reply> {
    let id = path.get("call");
    CallId::parse(id).ok_or_else(|| Reply::new(404, format!("call not found: {id}")))
}

fn turn(path: &PathParameters<'_>) -> Result<TurnId, Reply> {
    let id = path.get("turn");
    TurnId::parse(id).ok_or_else(|| Reply::new(404, format!("turn not found: {id}")))
}
