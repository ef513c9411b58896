//! One run: its conversation with the daemon, the calls it executes, and its end.
//!
//! A call is added to the run's timeline before it starts. After a crash, the worker therefore knows whether a
//! call that it gets again may have run before: then it is repeated only if it is read-only.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::WorkerContext;
use super::assignment::{Assignment, InputFile};
use super::call::DelegatedCalls;
use super::gate::{Admission, Gate};
use super::relay::{Relay, RelayTask, Target, is_end};
use super::socket::Socket;
use super::toolkit::ToolOutput;

/// Delay before the daemon or the control plane is contacted again.
const RETRY_DELAY: Duration = Duration::from_millis(500);
const RETRY_DELAY_LIMIT: Duration = Duration::from_secs(10);
/// Maximum time for the daemon to send the first frame of the turn.
const FIRST_FRAME_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before a busy daemon is tried again.
const BUSY_DELAY: Duration = Duration::from_secs(2);
/// Maximum time for tools and the daemon to end after the run.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of results that are kept in case the daemon requests them again.
const RESULTS_LIMIT: usize = 32;
/// Maximum length of an input file, in bytes.
const FILE_LIMIT: usize = 64 * 1024 * 1024;
const BUSY: &str = "Too many concurrent requests. Please wait.";
const HELD: &str = "not run: the run is paused or a person is in control. Make the call again.";
const UNKNOWN: &str = "the worker was restarted while this call ran; whether and how it ended is not \
                       known. Look before you make it again.";
const PROMPT: &str = "You are an agent that carries out one task on a machine of its own. Nobody answers \
    questions while you work: decide yourself, check what you did, and end with a short report of the \
    result. Relative paths are meant from the folder";

/// How the worker's part of a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The end was relayed.
    Finished,
    /// The run was reassigned, or had already ended.
    Lost,
}

/// A call from the daemon.
enum CallState {
    Running,
    Done(Vec<ToolOutput>),
}

/// One run.
pub(super) struct Job {
    context: Arc<WorkerContext>,
    assignment: Assignment,
    gate: Arc<Gate>,
    turn: String,
    relay: Relay,
    relay_task: Option<RelayTask>,
    /// The last frame of the turn that was relayed.
    relayed: u64,
    /// The last frame that an earlier process relayed.
    relayed_before: u64,
    calls: HashMap<String, CallState>,
    running: JoinSet<(DelegatedCalls, Vec<ToolOutput>)>,
    cancel: CancellationToken,
}

impl Job {
    pub(super) fn new(
        context: Arc<WorkerContext>,
        assignment: Assignment,
        gate: Arc<Gate>,
    ) -> Self {
        let (relay, task) = Relay::new(Target {
            api: context.api.clone(),
            run: assignment.run.clone(),
            worker: context.identity.id.clone(),
            assignment: assignment.number,
            gate: Arc::clone(&gate),
        });
        let turn = assignment.turn();
        let (relayed, relayed_before, calls, running, cancel) = Default::default();
        let relay_task = Some(task);
        Self {
            context,
            assignment,
            gate,
            turn,
            relay,
            relay_task,
            relayed,
            relayed_before,
            calls,
            running,
            cancel,
        }
    }

    /// Executes the run.
    pub(super) async fn execute(mut self) -> Ended {
        let mut relaying = JoinSet::new();
        if let Some(task) = self.relay_task.take() {
            relaying.spawn(task.run());
        }
        let relay = self.relay.clone();
        let ended = tokio::select! {
            () = self.work() => Ended::Finished,
            () = relay.gone() => Ended::Lost,
        };
        self.cancel.cancel();
        // Cancelled tools end their processes; a tool that does not is dropped.
        let _ =
            timeout(END_TIMEOUT, async { while self.running.join_next().await.is_some() {} }).await;
        if ended == Ended::Lost {
            self.abandon().await;
        }
        self.context.toolkit.over(&self.turn);
        ended
    }

    /// Makes the daemon stop the turn, if it can be reached.
    pub(super) async fn abandon(&self) {
        let stop = async {
            let mut socket = self.connect().await?;
            socket.send_new("stop-query", self.names()).await?;
            while socket.next().await?["type"] != "stop-query-ack" {}
            socket.close().await;
            Ok::<(), anyhow::Error>(())
        };
        if !matches!(timeout(END_TIMEOUT, stop).await, Ok(Ok(()))) {
            tracing::warn!(run = self.assignment.run, "could not stop the turn");
        }
    }

    async fn work(&mut self) {
        let text = self.prepare().await;
        let mut delay = RETRY_DELAY;
        loop {
            let began = Instant::now();
            match self.run_turn(&text).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(
                        run = self.assignment.run,
                        "lost the connection to the daemon: {error:#}"
                    );
                }
            }
            if began.elapsed() > RETRY_DELAY_LIMIT {
                delay = RETRY_DELAY;
            }
            sleep(delay).await;
            delay = (delay * 2).min(RETRY_DELAY_LIMIT);
        }
    }

    /// The message for the agent, which depends on the progress of an earlier process.
    async fn prepare(&mut self) -> String {
        while self.assignment.resumed
            && let Err(error) = self.read_timeline().await
        {
            tracing::warn!(run = self.assignment.run, "could not read the timeline: {error:#}");
            sleep(RETRY_DELAY).await;
        }
        let mut text = self.assignment.query.clone();
        for file in &self.assignment.files {
            let line = match self.fetch(file).await {
                Ok(name) => format!("The file {name} belongs to the task."),
                Err(error) => {
                    let artifact = &file.artifact;
                    format!("The file {artifact} belongs to the task but cannot be had: {error}.")
                }
            };
            text = format!("{text}\n\n{line}");
        }
        text
    }

    /// Finds out what an earlier process relayed of this turn.
    async fn read_timeline(&mut self) -> Result<()> {
        let mut after = 0;
        loop {
            let page = self.context.api.events(&self.assignment.run, after).await?;
            let events = page["events"].as_array().map(Vec::as_slice).unwrap_or_default();
            let own = events.iter().filter(|event| event["payload"]["turn_ref"] == *self.turn);
            let last = own.filter_map(|event| event["payload"]["sequence"].as_u64()).max();
            self.relayed = self.relayed.max(last.unwrap_or(0));
            if events.is_empty() {
                self.relayed_before = self.relayed;
                return Ok(());
            }
            after = page["next_after_seq"].as_u64().unwrap_or(after);
        }
    }

    /// Downloads a file into the folder; returns its name there.
    async fn fetch(&self, file: &InputFile) -> Result<String> {
        let name = file.filename.as_deref().unwrap_or(&file.artifact);
        // Names from outside must not lead out of the folder.
        let name = Path::new(name).file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| anyhow!("its name is not a valid file name"))?.to_owned();
        let path = self.context.toolkit.folder().join(&name);
        if path.exists() {
            return Ok(name);
        }
        let bytes = self.context.api.artifact(&file.artifact, FILE_LIMIT).await?;
        tokio::task::spawn_blocking(move || fs::write(path, bytes)).await??;
        Ok(name)
    }

    async fn connect(&self) -> Result<Socket> {
        let WorkerContext { api, daemon, identity, toolkit } = &*self.context;
        let folder = toolkit.folder().display();
        let definition = json!({
            "version": 1,
            "id": format!("run-{}", self.assignment.run),
            "name": "quintet worker",
            "system_prompt": { "mode": "replace", "content": format!("{PROMPT} {folder}.") },
            "tools": {
                "mode": "client_only",
                "client_manifest": toolkit.manifest(),
                "enabled_remote_tools": ["web_search"],
            },
            "runtime": { "operating_system": "Linux" },
        });
        let handshake = json!({
            "type": "handshake", "user_id": identity.user, "agent_definition": definition,
        });
        Socket::connect(daemon, api.token(), &handshake).await
    }

    /// The ids of the turn in messages.
    fn names(&self) -> Value {
        json!({ "conversation_ref": self.assignment.conversation, "turn_ref": self.turn })
    }

    /// Executes the daemon's calls until the turn ends. Fails if the connection fails.
    async fn run_turn(&mut self, text: &str) -> Result<()> {
        let mut socket = self.connect().await?;
        self.dispatch().await?;
        let query = json!({ "text": text, "conversation_ref": self.assignment.conversation });
        socket.send(&self.turn, "query", query.clone()).await?;
        let (mut received, mut stopping) = (false, false);
        let mut deadline = Instant::now() + FIRST_FRAME_TIMEOUT;
        loop {
            tokio::select! {
                frame = socket.next() => {
                    let frame = frame?;
                    if self.is_busy(&frame) {
                        sleep(BUSY_DELAY).await;
                        deadline = Instant::now() + FIRST_FRAME_TIMEOUT;
                        socket.send(&self.turn, "query", query.clone()).await?;
                    } else if self.is_own_turn(&frame) {
                        received = true;
                        if self.take(&mut socket, &frame).await? {
                            socket.close().await;
                            return Ok(());
                        }
                    } else if frame["type"] == "client-tool-manifest" {
                        self.log_rejected_tools(&frame);
                    }
                }
                Some(done) = self.running.join_next() => self.answer(&mut socket, done?).await?,
                () = self.gate.stopped(), if !stopping => {
                    stopping = true;
                    self.cancel.cancel();
                    socket.send_new("stop-query", self.names()).await?;
                }
                () = sleep_until(deadline), if !received => {
                    let why = json!({ "message": "the daemon no longer knows the turn" });
                    let payload = json!({ "payload": why, "turn_ref": self.turn });
                    let durable = self.relay.note("error", payload).await;
                    return Ok(durable.await?);
                }
            }
        }
    }

    /// Reports to the control plane that the run has started.
    async fn dispatch(&self) -> Result<()> {
        let WorkerContext { api, identity, .. } = &*self.context;
        let body = json!({
            "worker_id": identity.id, "user_id": identity.user, "turn_ref": self.turn,
            "conversation_ref": self.assignment.conversation, "assignment": self.assignment.number,
        });
        match api.dispatched(&self.assignment.run, body).await {
            Ok(_) => Ok(()),
            Err(error) if error.is_run_lost() => {
                self.relay.give_up();
                Err(error.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn is_own_turn(&self, frame: &Value) -> bool {
        frame["turn_ref"] == *self.turn || (frame["type"] == "error" && frame["id"] == *self.turn)
    }

    fn is_busy(&self, frame: &Value) -> bool {
        self.is_own_turn(frame) && frame["type"] == "error" && frame["payload"]["message"] == BUSY
    }

    fn log_rejected_tools(&self, frame: &Value) {
        for tool in frame["payload"]["rejected"].as_array().into_iter().flatten() {
            tracing::warn!(run = self.assignment.run, %tool, "the daemon refused a tool");
        }
    }

    /// Relays a frame and starts its calls; returns whether the turn has ended.
    async fn take(&mut self, socket: &mut Socket, frame: &Value) -> Result<bool> {
        let sequence = frame["sequence"].as_u64();
        let delegated = DelegatedCalls::of(frame, &self.turn);
        if sequence.is_some_and(|number| number <= self.relayed) {
            if let Some(delegated) = delegated {
                self.handle_repeated_call(socket, delegated, sequence.unwrap_or(0)).await?;
            }
            return Ok(false);
        }
        let durable = self.relay.frame(frame).await;
        self.relayed = sequence.unwrap_or(self.relayed);
        let over = is_end(frame["type"].as_str().unwrap_or_default());
        if over || delegated.is_some() {
            // Nothing more is read until the end is durable. The daemon pings to check whether the
            // client has seen the end, so a worker that dies now receives it again.
            durable.await?;
        }
        if let Some(delegated) = delegated {
            self.begin(delegated);
        }
        Ok(over)
    }

    /// Handles a call that the daemon sends a second time.
    async fn handle_repeated_call(
        &mut self,
        socket: &mut Socket,
        delegated: DelegatedCalls,
        sequence: u64,
    ) -> Result<()> {
        let harmless =
            delegated.calls.iter().all(|call| self.context.toolkit.only_reads(&call.tool));
        match self.calls.get(&delegated.request) {
            Some(CallState::Running) => {}
            Some(CallState::Done(outputs)) => {
                let (kind, payload) = delegated.result(outputs);
                socket.send_new(kind, payload).await?;
            }
            None if sequence > self.relayed_before || harmless => self.begin(delegated),
            None => {
                let outputs =
                    delegated.calls.iter().map(|_| ToolOutput::failure(UNKNOWN)).collect();
                self.answer(socket, (delegated, outputs)).await?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, delegated: DelegatedCalls) {
        if self.calls.len() >= RESULTS_LIMIT {
            self.calls.retain(|_, state| matches!(state, CallState::Running));
        }
        self.calls.insert(delegated.request.clone(), CallState::Running);
        let (context, gate, relay) =
            (Arc::clone(&self.context), Arc::clone(&self.gate), self.relay.clone());
        let cancel = self.cancel.clone();
        self.running.spawn(async move {
            let mut outputs = Vec::new();
            for call in &delegated.calls {
                let only_reads = context.toolkit.only_reads(&call.tool);
                if gate.holds(only_reads) {
                    let held = json!({ "tool_name": call.tool, "parameters": call.input });
                    // The call does not wait until the note is stored.
                    drop(relay.note("run-tool-held", held).await);
                }
                outputs.push(match gate.admit(only_reads).await {
                    Admission::Run => context.toolkit.run(call.clone(), cancel.clone()).await,
                    Admission::Held => ToolOutput::failure(HELD),
                    Admission::Stopped => ToolOutput::failure("not run: the run is stopped"),
                });
            }
            (delegated, outputs)
        });
    }

    async fn answer(
        &mut self,
        socket: &mut Socket,
        (delegated, outputs): (DelegatedCalls, Vec<ToolOutput>),
    ) -> Result<()> {
        let (kind, payload) = delegated.result(&outputs);
        self.calls.insert(delegated.request, CallState::Done(outputs));
        socket.send_new(kind, payload).await
    }
}
