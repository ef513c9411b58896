//! Moves bytes: files of the page, requests to `decode`, commands to the core, answers to the page.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use quintet_kernel::command::{Approve, Command, NewAttachment, NewMessage};
use quintet_kernel::event::Event;
use quintet_kernel::port::{Error, Receipt};
use quintet_kernel::{CallId, SessionId, State};
use serde_json::{Value, json};

use super::access::{self, Login};
use super::app_state::AppState;
use super::decode::{
    BODY_LIMIT, File, MESSAGE_LIMIT, Reply, Route, Step, decode, media_kind, refusal,
};
use super::routes::{REFUSALS, ROUTES};
use super::usage::{self, Range};
use super::{
    assets, family, files, history, memory, overhead, prompt, question, runs, senses, sessions,
    shape, stream, tool_servers,
};
use crate::transport::access::Denied;
use crate::transport::body::{BodyError, read_body};
use crate::transport::query::parameter;
use crate::transport::routes;

/// Events per page of the history, unless the request says otherwise.
const HISTORY_PAGE: u64 = 400;

#[derive(Clone)]
struct App {
    app: AppState,
    login: Login,
}

/// The console as a service.
pub(super) fn router(app: AppState, login: Login) -> Router {
    routes::router(ROUTES, REFUSALS, serve).with_state(App { app, login })
}

/// The answer to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    reply(&Reply::new(denied.status(), denied.to_string()))
}

async fn serve(app: App, route: Result<Route, Reply>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let answer = match route {
        Ok(Route::File(path)) => match assets::file(&path) {
            Some(file) => return file.response(&head.headers),
            None => Err(Reply::new(404, format!("there is nothing at {path}"))),
        },
        Ok(Route::Login) => match read(body, BODY_LIMIT).await {
            Ok(form) => return app.login.enter(&form),
            Err(reply) => Err(reply),
        },
        Ok(Route::Page) => return app.page(&head),
        _ if !app.login.admits(&head) => {
            Err(Reply::new(401, "a token is needed: open the page that `quintet console` prints"))
        }
        Ok(_) if is_foreign(&head) => Err(Reply::new(403, "requests from other sites are refused")),
        Ok(route) => app.answer(route, &head, body).await,
        Err(reply) => Err(reply),
    };
    answer.unwrap_or_else(|refused| reply(&refused))
}

/// True if the browser reports that a page of another site sent the request.
fn is_foreign(head: &Parts) -> bool {
    let site = head.headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

impl App {
    fn page(&self, head: &Parts) -> Response {
        if let Some(sent_on) = self.login.named(head) {
            return sent_on;
        }
        if !self.login.admits(head) {
            return access::page("");
        }
        self.login.remember(head, assets::PAGE.response(&head.headers))
    }

    async fn answer(&self, route: Route, head: &Parts, body: Body) -> Result<Response, Reply> {
        let query = head.uri.query().unwrap_or_default();
        let app = &self.app;
        let shown = match &route {
            Route::Start => self.start().await?,
            // Not part of the start, because providers are asked and each may be slow.
            Route::Models => {
                let models = app.services.models.list().await;
                models.iter().filter(|model| model.usable).map(shape::model).collect()
            }
            Route::Stream => {
                let request = stream::Request::parse(query);
                let request = request.map_err(|wrong| Reply::new(400, wrong))?;
                let opened = stream::open(app.clone(), request).await;
                return opened.map_err(|error| refusal(&error));
            }
            Route::Search => {
                let text = parameter(query, "q").unwrap_or_default();
                sessions::search(&*app.services.sessions, &*app.services.search, &text).await?
            }
            Route::Sessions => {
                let after = parameter(query, "after").map(|text| {
                    let wrong = || Reply::new(400, format!("not a position in the list: {text}"));
                    sessions::After::parse(&text).ok_or_else(wrong)
                });
                let page =
                    sessions::page(&*app.services.sessions, after.transpose()?.as_ref()).await;
                page.map_err(|error| refusal(&error))?
            }
            Route::Session(id) => shape::session(&*self.view(id).await?),
            Route::Usage | Route::SessionUsage(_) => self.usage(&route, query).await?,
            Route::Overhead => overhead::shape(&app.services.overheads.recent_turns()),
            Route::Doctor => {
                let found = app.services.diagnosis.check().await;
                json!({ "findings": found.iter().map(shape::finding).collect::<Vec<_>>() })
            }
            Route::Configuration => {
                let text = app.services.diagnosis.configuration().await;
                json!({ "text": text.map_err(|why| Reply::new(500, why))? })
            }
            Route::ToolServers => {
                let listed =
                    tool_servers::list(&*app.services.tool_server_control, &*app.services.sessions)
                        .await;
                listed.map_err(|error| refusal(&error))?
            }
            Route::Family(id) => {
                let tree = family::tree(&app.usage, &self.usage_sources(), id).await;
                tree.map_err(|error| refusal(&error))?
            }
            Route::History(id) => self.history(id, query).await?,
            Route::Prompt(id) => self.prompt(id, query).await?,
            Route::Attachment(id, name) => return self.file(id, None, name).await,
            Route::Artifact(id, call, name) => return self.file(id, Some(call), name).await,
            Route::AttachmentText(id, name) => self.text_on(id, None, name).await?,
            Route::ArtifactText(id, call, name) => self.text_on(id, Some(call), name).await?,
            Route::Memory(id) => self.memory(id, query).await?,
            Route::Changes(id, turn) => {
                let changes = app.services.inspection.turn_changes(id, turn).await;
                shape::changes(&changes.map_err(|error| refusal(&error))?)
            }
            Route::TryUndo(id, turn) => {
                let conflicts = app.services.inspection.revert_conflicts(id, turn).await;
                json!({ "refused": conflicts.map_err(|error| refusal(&error))? })
            }
            Route::Runs => {
                let listed = runs::list(&*app.services.runs).await;
                json!({ "runs": listed.map_err(|error| runs::refusal(&error))? })
            }
            Route::Page
            | Route::File(_)
            | Route::Login
            | Route::CreateSession
            | Route::SendMessage(_)
            | Route::AnswerQuestion(_)
            | Route::Stop(_)
            | Route::Fork(_)
            | Route::ChooseModel(_)
            | Route::Compact(_)
            | Route::Delete(_)
            | Route::Undo(..)
            | Route::Redo(..)
            | Route::Retry(..)
            | Route::Withdraw(..)
            | Route::CreateRun
            | Route::ControlRun(_)
            | Route::AllowServers
            | Route::DisallowServers
            | Route::Transcribe
            | Route::Speak => self.change(&route, head, body).await?,
        };
        Ok(json_response(&shown))
    }

    /// What the page needs before it shows anything.
    async fn start(&self) -> Result<Value, Reply> {
        let app = &self.app;
        let list = sessions::page(&*app.services.sessions, None).await;
        let mut shown = list.map_err(|error| refusal(&error))?;
        shown["default_model"] = (*app.default_model).into();
        shown["boot"] = app.boot.into();
        shown["version"] = env!("CARGO_PKG_VERSION").into();
        let runs = runs::list(&*app.services.runs).await.map_err(|error| runs::refusal(&error))?;
        shown["runs"] = runs.into();
        let storage = app.services.storage_health.check().await;
        shown["reads_pictures"] = app.services.ocr.ready().is_ok().into();
        shown["speaks"] = app.services.speaker.ready().is_ok().into();
        shown["transcribes"] = app.services.transcriber.ready().is_ok().into();
        shown["storage"] = storage.err().map_or(Value::Null, |error| error.to_string().into());
        Ok(shown)
    }

    async fn view(&self, session: &SessionId) -> Result<Arc<State>, Reply> {
        self.app.services.sessions.view(session).await.map_err(|error| refusal(&error))
    }

    fn usage_sources(&self) -> usage::Sources<'_> {
        let services = &self.app.services;
        usage::Sources {
            archive: &*services.archive,
            sessions: &*services.sessions,
            models: &*services.models,
            store: &*services.stored_preferences,
        }
    }

    /// The usage of model calls: of all sessions in a period, or of one session.
    async fn usage(&self, route: &Route, query: &str) -> Result<Value, Reply> {
        let sources = self.usage_sources();
        let shown = if let Route::SessionUsage(session) = route {
            usage::of_session(&sources, session).await
        } else {
            let range = Range::parse(query).map_err(|wrong| Reply::new(400, wrong))?;
            self.app.usage.overall(&sources, range).await
        };
        shown.map_err(|error| refusal(&error))
    }

    async fn history(&self, session: &SessionId, query: &str) -> Result<Value, Reply> {
        let number = |name: &str| {
            let wrong = |_| Reply::new(400, format!("{name} must be a number"));
            parameter(query, name).map(|text| text.parse::<u64>().map_err(wrong)).transpose()
        };
        let limit = number("limit")?.unwrap_or(HISTORY_PAGE);
        let page =
            history::page(&*self.app.services.archive, session, number("before")?, limit).await;
        page.map_err(|error| refusal(&error))
    }

    /// The prompt of the step that an event started, or the one that would be sent now.
    async fn prompt(&self, session: &SessionId, query: &str) -> Result<Value, Reply> {
        let state = match parameter(query, "step") {
            None => self.view(session).await?,
            Some(step) => {
                let step = step.parse().map_err(|_| Reply::new(400, "step must be a number"))?;
                let state = self.app.services.inspection.session_at(session, step).await;
                let asks = |state: &State| {
                    let begun = state.open.as_ref().and_then(|open| open.step());
                    begun.is_some_and(|step| step.written == 0)
                };
                let none = || Reply::new(404, format!("no model call started at event {step}"));
                let state = state.map_err(|error| refusal(&error))?.filter(asks);
                Arc::new(state.ok_or_else(none)?)
            }
        };
        let models = Arc::clone(&self.app.services.models);
        // Counting tokens may load a tokenizer first.
        let shown = tokio::task::spawn_blocking(move || prompt::show(&state, &*models));
        shown.await.map_err(|_| Reply::new(500, "the prompt could not be counted"))
    }

    /// A file that was attached to a message, or that a call produced.
    async fn file(
        &self,
        session: &SessionId,
        call: Option<&CallId>,
        name: &str,
    ) -> Result<Response, Reply> {
        let (content, mime) = self.content(session, call, name).await?;
        Ok(files::response(content, &mime))
    }

    /// The text on a picture.
    async fn text_on(
        &self,
        session: &SessionId,
        call: Option<&CallId>,
        name: &str,
    ) -> Result<Value, Reply> {
        let (picture, _) = self.content(session, call, name).await?;
        senses::text_on(&*self.app.services.ocr, picture).await
    }

    async fn content(
        &self,
        session: &SessionId,
        call: Option<&CallId>,
        name: &str,
    ) -> Result<(Vec<u8>, String), Reply> {
        let name = parameter(&format!("name={name}"), "name").unwrap_or_default();
        let state = self.view(session).await?;
        let none = || Reply::new(404, format!("file not found: {name}"));
        let (blob, mime) = files::find(&state, call, &name).ok_or_else(none)?;
        let content = self.app.services.blobs.get(&blob).await;
        Ok((content.map_err(|error| refusal(&error.into()))?, mime))
    }

    /// Passages of the workspace's memory that match a query or, without one, the long-term notes.
    async fn memory(&self, session: &SessionId, query: &str) -> Result<Value, Reply> {
        let off = || Reply::new(404, "memory is off: set memory.enabled");
        let memory = self.app.services.memory.as_ref().ok_or_else(off)?;
        let summary =
            self.app.services.sessions.summary(session).await.map_err(|error| refusal(&error))?;
        let text = parameter(query, "q").unwrap_or_default();
        let found = memory::read(&**memory, &summary.workspace, text).await;
        found.map_err(|error| Reply::new(400, error.to_string()))
    }

    async fn change(&self, route: &Route, head: &Parts, body: Body) -> Result<Value, Reply> {
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
        if head.method != Method::POST || !is_json {
            return Err(Reply::new(415, "the body must be application/json"));
        }
        let limit = match route {
            Route::SendMessage(_) | Route::Transcribe => MESSAGE_LIMIT,
            _ => BODY_LIMIT,
        };
        let step = decode(route, &read(body, limit).await?)?;
        let done = match step {
            Step::Create(origin) => {
                let folder = self.app.services.directory_listing.files(&origin.workspace, 1).await;
                folder.map_err(|why| {
                    Reply::new(400, format!("{}: {why}", origin.workspace.display()))
                })?;
                self.app.services.sessions.create(origin).await
            }
            Step::Submit(id, command) => self.app.services.sessions.submit(&id, command).await,
            Step::Send(id, say, files) => self.send(&id, say, files).await,
            Step::Answer(id, approve, digest) => return self.approve(&id, approve, &digest).await,
            Step::Fork(id, at) => self.app.services.sessions.fork(&id, at).await,
            Step::Delete(id) => {
                let removed = self.app.services.sessions.remove(&id).await;
                removed.map_err(|error| refusal(&error))?;
                return Ok(json!({}));
            }
            Step::CreateRun(new) => {
                let created = self.app.services.runs.create(new).await;
                return Ok(runs::shape(&created.map_err(|error| runs::refusal(&error))?.entry));
            }
            Step::ControlRun(run, command) => {
                let changed = self.app.services.runs.submit(&run, command).await;
                return Ok(runs::shape(&changed.map_err(|error| runs::refusal(&error))?.entry));
            }
            Step::Transcribe(audio) => {
                return senses::transcript(&*self.app.services.transcriber, audio).await;
            }
            Step::Speak(text, sentence) => {
                return senses::spoken(&*self.app.services.speaker, &text, sentence).await;
            }
            Step::AllowServers(folder, digests) => {
                let allowed = self.app.services.tool_server_control.allow(folder, digests).await;
                return allowed.map(|()| json!({})).map_err(|why| Reply::new(409, why));
            }
            Step::DisallowServers(folder, digests) => {
                let done = self.app.services.tool_server_control.disallow(folder, digests).await;
                return done.map(|()| json!({})).map_err(|why| Reply::new(500, why));
            }
        };
        result(&done.map_err(|error| refusal(&error))?)
    }

    async fn send(
        &self,
        session: &SessionId,
        mut say: Box<NewMessage>,
        files: Vec<File>,
    ) -> Result<Receipt, Error> {
        // Files of a session that does not exist must not be stored.
        self.app.services.sessions.summary(session).await?;
        for File { name, mime, content } in files {
            let size = content.len() as u64;
            let blob = self.app.services.blobs.put(content).await?;
            say.files.push((media_kind(&mime), NewAttachment { name, mime, blob, size }));
        }
        self.app.services.sessions.submit(session, Command::AddMessage(say)).await
    }

    /// Submits an answer if the question is still the one that was shown.
    async fn approve(
        &self,
        session: &SessionId,
        approve: Approve,
        digest: &str,
    ) -> Result<Value, Reply> {
        let state = self.view(session).await?;
        match question::digest(&state, &approve.question) {
            None => return Err(Reply::new(409, "the question is no longer open")),
            Some(current) if current != digest => {
                return Err(Reply::new(409, "the question has changed since it was shown"));
            }
            Some(_) => {}
        }
        let done = self.app.services.sessions.submit(session, Command::Approve(approve)).await;
        result(&done.map_err(|error| refusal(&error))?)
    }
}

/// The result of a command. Fails if a turn's changes could not be undone.
fn result(receipt: &Receipt) -> Result<Value, Reply> {
    let mut shown = json!({ "session": receipt.session.as_str() });
    if let Some(turn) = receipt.turn() {
        shown["turn"] = turn.as_str().into();
    }
    for record in &receipt.records {
        if let Event::RevertFailed { reason, .. } = &record.event {
            return Err(Reply::new(409, reason.clone()));
        }
        if let Event::Reverted { files, .. } = &record.event {
            shown["files"] = json!(files);
        }
    }
    Ok(shown)
}

async fn read(body: Body, limit: usize) -> Result<Bytes, Reply> {
    read_body(body, limit).await.map_err(|unread| match unread {
        BodyError::Broken => Reply::new(400, "the request body is incomplete"),
        BodyError::TooLarge => Reply::new(413, format!("the request has more than {limit} bytes")),
    })
}

fn reply(reply: &Reply) -> Response {
    let mut response = json_response(&json!({ "error": reply.error }));
    *response.status_mut() =
        StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

fn json_response(body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    assets::protect(headers);
    response
}
