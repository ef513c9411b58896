//! Opens new and existing sessions.

use std::path::Path;

use futures_util::FutureExt as _;
use quintet_kernel::event::NewSession;
use quintet_kernel::follow::Cursor;
use quintet_kernel::port::Error as PortError;
use quintet_kernel::{Item, SessionId, State};
use serde_json::{Value, json};

use super::super::commands::SlashCommand;
use super::super::decode::OpenParams;
use super::super::encode::{Contents, Encoder, Output, RequiredContent};
use super::super::wire;
use super::requests::{Outcome, rpc_error};
use super::{Connection, Gone, Messages, OpenSession};
use crate::dialect::Services;
use crate::jsonrpc::{self, Error, Id};

/// The largest file of a message that is sent to the editor, in bytes.
const FILE_LIMIT: u64 = 8 * 1024 * 1024;

/// The most reads of text in flight at the end of a replay.
const IN_FLIGHT_READS_LIMIT: usize = 64;

/// How a session is opened. A loaded session is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenKind {
    Created,
    Loaded,
    Resumed,
}

impl Connection {
    pub(super) async fn new_session(
        &mut self,
        id: Option<&Id>,
        params: OpenParams,
    ) -> Result<Option<Outcome>, Gone> {
        if let Err(error) = check_folder(&params.cwd).await {
            return Ok(Some(Err(error)));
        }
        let origin = NewSession { workspace: params.cwd.clone(), ..NewSession::default() };
        match self.app.services.sessions.create(origin).await {
            Ok(receipt) => {
                let session = receipt.session;
                self.open(id, &session, params, OpenKind::Created).await
            }
            Err(error) => Ok(Some(Err(rpc_error(&error)))),
        }
    }

    pub(super) async fn open_session(
        &mut self,
        id: Option<&Id>,
        session: &SessionId,
        params: OpenParams,
        kind: OpenKind,
    ) -> Result<Option<Outcome>, Gone> {
        if let Err(error) = check_folder(&params.cwd).await {
            return Ok(Some(Err(error)));
        }
        self.open(id, session, params, kind).await
    }

    /// Follows a session, replays it if it is loaded, responds, and only then sends the open questions.
    async fn open(
        &mut self,
        id: Option<&Id>,
        session: &SessionId,
        params: OpenParams,
        kind: OpenKind,
    ) -> Result<Option<Outcome>, Gone> {
        let which = match self.follow(session, &params, kind).await {
            Ok(which) => which,
            Err(error) => return Ok(Some(Err(rpc_error(&error)))),
        };
        if let Err(error) = self.catch_up(which, kind).await? {
            self.sessions.remove(which);
            return Ok(Some(Err(rpc_error(&error))));
        }
        let mut messages = Vec::new();
        if let Some(id) = id {
            let answer = self.open_response(which, kind).await;
            messages.push(jsonrpc::response(id, &Ok(answer)));
        }
        messages.push(self.commands_update(which));
        self.files.open(&self.app.services.editors, session, &self.client());
        for output in self.sessions[which].encoder.go_live() {
            self.output(which, output, &mut messages).await;
        }
        messages.extend(self.start_tool_servers(session, &params));
        self.queue.send(&messages).await?;
        Ok(None)
    }

    async fn follow(
        &mut self,
        session: &SessionId,
        params: &OpenParams,
        kind: OpenKind,
    ) -> Result<usize, PortError> {
        let sessions = &self.app.services.sessions;
        let state = sessions.view(session).await?;
        let from = match kind {
            OpenKind::Loaded => Cursor::START,
            OpenKind::Created | OpenKind::Resumed => Cursor::after(before_open_turn(&state)),
        };
        let follow = sessions.follow(session, from).await?;
        let encoder = Encoder::new(&state, self.client());
        if let Some(which) = self.position(session) {
            self.sessions.remove(which);
        }
        // Open questions of the old subscription are sent again.
        self.questions_closed(session);
        let (cwd, sent_prompts) = (params.cwd.clone(), Vec::new());
        self.sessions.push(OpenSession { follow, encoder, cwd, sent_prompts });
        Ok(self.sessions.len() - 1)
    }

    /// Reads a session up to its head at the time when following began.
    async fn catch_up(
        &mut self,
        which: usize,
        kind: OpenKind,
    ) -> Result<Result<(), PortError>, Gone> {
        let is_behind = |open: &OpenSession| open.follow.position().seq < open.follow.head();
        while is_behind(&self.sessions[which]) {
            let items = match self.sessions[which].follow.next().await {
                Ok(Some(items)) => items,
                Ok(None) => return Ok(Err(PortError::Closing)),
                Err(error) => return Ok(Err(error)),
            };
            self.replay(which, items, kind).await?;
        }
        // Text in flight belongs to the replay if it is available now.
        for _ in 0..IN_FLIGHT_READS_LIMIT {
            match self.sessions[which].follow.next().now_or_never() {
                Some(Ok(Some(items))) => self.replay(which, items, kind).await?,
                Some(Ok(None) | Err(_)) | None => break,
            }
        }
        let encoder = &mut self.sessions[which].encoder;
        let outputs = match kind {
            OpenKind::Loaded => encoder.finish_replay(),
            OpenKind::Created | OpenKind::Resumed => {
                encoder.skip_replay();
                Vec::new()
            }
        };
        self.replayed(which, outputs, kind).await?;
        Ok(Ok(()))
    }

    async fn replay(&mut self, which: usize, items: Vec<Item>, kind: OpenKind) -> Result<(), Gone> {
        for item in items {
            let outputs = self.encoded(which, &item).await;
            self.replayed(which, outputs, kind).await?;
        }
        Ok(())
    }

    async fn replayed(
        &mut self,
        which: usize,
        outputs: Vec<Output>,
        kind: OpenKind,
    ) -> Result<(), Gone> {
        let session = self.sessions[which].encoder.session().clone();
        let mut messages = Vec::new();
        for output in outputs {
            match output {
                Output::Update(update) if kind == OpenKind::Loaded => {
                    messages.push(wire::update(&session, &update));
                }
                // If the session was already open, a prompt of this connection may wait for this turn.
                Output::TurnEnded(turn, outcome) => {
                    messages.extend(self.turn_ended(&session, &turn, outcome));
                }
                Output::Update(_)
                | Output::Ask(_)
                | Output::QuestionClosed(_)
                | Output::Spawned(_)
                | Output::SettingsChanged
                | Output::Compacted(_)
                | Output::Reverted(..) => {}
            }
        }
        self.queue.send(&messages).await
    }

    async fn open_response(&self, which: usize, kind: OpenKind) -> Value {
        let encoder = &self.sessions[which].encoder;
        let mut answer = json!({ "modes": encoder.settings.modes() });
        if kind == OpenKind::Created {
            answer["sessionId"] = encoder.session().as_str().into();
        }
        if !self.client().no_options {
            let models = self.app.models.usable().await;
            answer["configOptions"] = encoder.settings.options(&models);
        }
        answer
    }

    /// The update with the current commands of a session.
    fn commands_update(&mut self, which: usize) -> String {
        let open = &mut self.sessions[which];
        let session = open.encoder.session();
        open.sent_prompts = self.app.services.server_prompts.list(Some(session), &open.cwd);
        wire::update(session, &SlashCommand::available(&open.sent_prompts))
    }

    /// The updates for sessions whose commands changed.
    pub(super) fn changed_commands(&mut self) -> Messages {
        let prompts = &self.app.services.server_prompts;
        let is_changed = |open: &OpenSession| {
            prompts.list(Some(open.encoder.session()), &open.cwd) != open.sent_prompts
        };
        let changed: Vec<usize> =
            (0..self.sessions.len()).filter(|n| is_changed(&self.sessions[*n])).collect();
        changed.into_iter().map(|which| self.commands_update(which)).collect()
    }

    /// Drops the questions of a session that the editor has closed.
    pub(super) fn questions_closed(&mut self, session: &SessionId) {
        self.questions.retain(|sent| !sent.belongs_to(session));
    }

    /// Starts the MCP servers that the editor provides. Returns a notice about unsupported servers, if the
    /// editor shows notices.
    fn start_tool_servers(&self, session: &SessionId, params: &OpenParams) -> Option<String> {
        let provided = &params.mcp_servers;
        self.app.services.tool_servers.join(session, &params.cwd, provided.servers.clone());
        if provided.unsupported.is_empty() || !self.client().notices {
            return None;
        }
        let update = json!({
            "sessionUpdate": "notice",
            "severity": "warning",
            "title": "Some MCP servers of the editor are not used: only stdio and HTTP are supported",
            "description": provided.unsupported.join(", "),
        });
        Some(wire::update(session, &update))
    }
}

/// The last event before the open turn, or the last event of the session.
fn before_open_turn(state: &State) -> u64 {
    let open = state.open.as_ref().and_then(|open| state.turn(&open.id));
    open.map_or(state.head, |turn| turn.begins.saturating_sub(1))
}

async fn check_folder(path: &Path) -> Result<(), Error> {
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) | Err(_) => Err(Error::field("cwd", "a folder that exists")),
    }
}

/// Reads the content that an item refers to. Content that cannot be read is left out.
pub(super) async fn contents(services: &Services, required: RequiredContent<'_>) -> Contents {
    let mut contents = Contents::default();
    match required {
        RequiredContent::Nothing => {}
        RequiredContent::Changes(changes) => {
            match services.inspection.with_contents(changes.to_vec()).await {
                Ok(changes) => contents.changes = changes,
                Err(error) => tracing::warn!(%error, "the changed files of a call cannot be read"),
            }
        }
        RequiredContent::Files(files) => {
            for file in files.into_iter().filter(|file| file.size <= FILE_LIMIT) {
                match services.blobs.get(&file.blob).await {
                    Ok(bytes) => drop(contents.files.insert(file.name, bytes)),
                    Err(error) => tracing::warn!(%error, "a file of a message cannot be read"),
                }
            }
        }
    }
    contents
}
