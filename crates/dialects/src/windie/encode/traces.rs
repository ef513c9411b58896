//! Timing of the parts of a turn, for clients that collect traces. Contains counts, names and times, never
//! message text.

use quintet_kernel::event::{Event, FailureCode};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::{Channel, ModelRef, Prompt};
use quintet_kernel::{Item, Time};
use serde_json::{Value, json};

use super::Link;
use super::turn_frames::{Frame, TurnFrames};
use crate::windie::agent::builtin_tools;
use crate::windie::wire::query;

/// The open spans of a turn, and the counts that its traces report.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    started: Option<Time>,
    /// The start of the running model call, and the data of its trace.
    model_call: Option<(Time, Value)>,
    /// The start of the running compaction.
    compaction: Option<Time>,
    pictures: usize,
    /// True if the client sent the state of the desktop.
    has_state: bool,
    /// True if the user wants the answer to be spoken.
    speech: bool,
    /// True if the daemon can speak it.
    speaks: bool,
    chunks: u64,
    calls: u64,
    outputs: u64,
}

/// A piece of work of a turn: what it is, where it is done, and its number among those of its kind.
#[derive(Clone, Copy)]
struct Span {
    path: &'static str,
    stage: &'static str,
    runtime: &'static str,
    nth: u64,
}

const fn span(path: &'static str, stage: &'static str, nth: u64) -> Span {
    Span { path, stage, runtime: "backend", nth }
}

const STREAM: Span = span("backend.stream", "stream", 1);

fn call_span(nth: u64) -> Span {
    Span { runtime: "provider", ..span("provider.call", "request", nth) }
}

/// The state of a piece of work. One that ended has its start, if known; a failure has a code and a message.
#[derive(Clone, Copy)]
enum Status<'a> {
    Started,
    Skipped,
    Succeeded(Option<Time>),
    Failed(Option<Time>, &'a str, &'a str),
}

impl Link {
    /// The traces that precede the frames of an item.
    pub(super) fn traced_before(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        let Item::Event(record) = item else { return Vec::new() };
        let at = record.at;
        match &record.event {
            Event::Compacted { summary, messages, tokens_before, .. } => {
                let data = json!({
                    "reason": self.why(),
                    "strategy": "auto",
                    "beforeTokens": tokens_before,
                    "afterTokens": prompt.map(super::history::token_estimate),
                    "removedMessages": messages,
                    "applied": true,
                    "hasSummary": !summary.is_empty(),
                    "replacementHistoryEntryCount": prompt.map(|prompt| prompt.messages.len()),
                });
                self.compaction_trace(Status::Succeeded, data, at)
            }
            Event::CompactionFailed { .. } => {
                let data = json!({ "reason": self.why(), "strategy": "auto" });
                let (code, message) =
                    ("backend_compaction_failed", "the summary could not be made");
                self.compaction_trace(|since| Status::Failed(since, code, message), data, at)
            }
            event => {
                let turn = event.turn().and_then(|turn| self.turn_mut(turn));
                turn.map(|of| of.end_traces(event, at)).unwrap_or_default()
            }
        }
    }

    /// The traces that follow the frames of an item.
    pub(super) fn traced_after(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        if let Item::Event(record) = item
            && let Event::CompactionRequested { tokens, .. } = &record.event
        {
            return self.compaction_started(*tokens, record.at);
        }
        let speaks = self.optional_events.speech;
        let sources = prompt.map(|prompt| self.tool_sources(prompt));
        let Some(of) = super::turn_of(item).and_then(|turn| self.turn_mut(turn)) else {
            return Vec::new();
        };
        let record = match item {
            Item::Event(record) => record,
            Item::Text { channel, .. } => {
                of.spans.chunks += u64::from(*channel == Channel::Text);
                return Vec::new();
            }
            Item::Progress { .. } => return Vec::new(),
        };
        match &record.event {
            Event::MessageAdded { role: Role::User, parts, options, .. } => {
                let is_picture = |part: &&Part| matches!(part, Part::Media { .. });
                of.spans = Spans {
                    started: Some(record.at),
                    pictures: parts.iter().filter(is_picture).count(),
                    has_state: options.front_end_data("system_state_internal").is_some(),
                    speech: options.front_end_data(query::SPEECH).is_some(),
                    speaks,
                    ..Spans::default()
                };
            }
            Event::StepStarted { model, .. } => {
                return of.step_started(model, prompt.zip(sources), record.at);
            }
            Event::ModelCompleted { .. } => return of.call_ended(record.at).into_iter().collect(),
            Event::CallStarted { .. } => of.spans.calls += 1,
            Event::CallCompleted { .. } => of.spans.outputs += 1,
            _ => {}
        }
        Vec::new()
    }

    /// The number of tools from each source.
    fn tool_sources(&self, prompt: &Prompt) -> Value {
        let (mut builtin, mut client, mut daemon) = (0, 0, 0);
        for tool in &prompt.tools {
            match (self.client_tools.contains(&tool.name), builtin_tools::tool(&tool.name)) {
                (true, Some(_)) => builtin += 1,
                (true, None) => client += 1,
                (false, _) => daemon += 1,
            }
        }
        json!({
            "builtin": builtin,
            "client": client,
            "mcp": 0,
            "plugin": 0,
            "backend_remote": daemon,
        })
    }

    fn compaction_started(&mut self, tokens: u64, at: Time) -> Vec<Frame> {
        let added = self.summarized_turn().map_or(0, |of| of.added);
        let data = json!({
            "reason": self.why(),
            "strategy": "auto",
            "beforeTokens": tokens,
            "projectedTokens": tokens.saturating_add(added),
            "force": self.open.is_none(),
        });
        let frames = self.compaction_trace(|_| Status::Started, data, at);
        self.summarized_turn().into_iter().for_each(|of| of.spans.compaction = Some(at));
        frames
    }

    /// Traces a compaction within a turn, with the status that its start gives. Clients drop the traces of
    /// one that they requested themselves, and would then report a gap in the numbers.
    fn compaction_trace(
        &mut self,
        status: impl FnOnce(Option<Time>) -> Status<'static>,
        data: Value,
        at: Time,
    ) -> Vec<Frame> {
        let turn = self.summarized_turn().filter(|of| of.turn.is_some());
        let trace = turn.map(|of| {
            let span = span("backend.compaction", "compact", of.steps + 1);
            let status = status(of.spans.compaction.take());
            of.trace(span, status, data, at)
        });
        trace.into_iter().collect()
    }
}

impl TurnFrames {
    fn trace(&mut self, span: Span, status: Status<'_>, data: Value, at: Time) -> Frame {
        let Span { path, stage, runtime, nth } = span;
        let (status, since, error) = match status {
            Status::Started => ("started", None, None),
            Status::Skipped => ("skipped", None, None),
            Status::Succeeded(since) => ("succeeded", since, None),
            Status::Failed(since, code, message) => {
                ("failed", since, Some(json!({ "code": code, "message": message })))
            }
        };
        let name = self.name();
        let mut payload = json!({
            "schemaVersion": 1,
            "path": path,
            "stage": stage,
            "status": status,
            "runtime": runtime,
            "traceId": format!("trace-{name}"),
            "spanId": format!("span-{name}-{path}-{nth}"),
            "requestId": name,
            "startedAt": since.unwrap_or(at).to_string(),
            "data": data,
        });
        if path != STREAM.path {
            payload["parentSpanId"] = format!("span-{name}-{}-1", STREAM.path).into();
        }
        if status != "started" {
            payload["endedAt"] = at.to_string().into();
        }
        if let Some(since) = since {
            payload["durationMs"] = json!(at.since(since).as_millis() as u64);
        }
        if let Some(error) = error {
            payload["error"] = error;
        }
        self.frame("trace-event", &payload, at)
    }

    /// Traces the start of a model call, with what its prompt was made of.
    fn step_started(
        &mut self,
        model: &ModelRef,
        prompt: Option<(&Prompt, Value)>,
        at: Time,
    ) -> Vec<Frame> {
        let nth = self.steps;
        let mut data = json!({
            "iteration": nth,
            "modelId": model.model,
            "modelProvider": model.provider,
        });
        let Some((prompt, sources)) = prompt else {
            self.spans.model_call = Some((at, data));
            return Vec::new();
        };
        let mode = if nth == 1 { "initial" } else { "rebuild" };
        let (messages, tools) = (prompt.messages.len(), prompt.tools.len());
        let built = json!({
            "iteration": nth,
            "promptMode": mode,
            "promptMessageCount": messages,
            "toolSchemaCount": tools,
            "hasPromptMetadata": nth == 1,
            "finalToolSourceCounts": sources,
        });
        let offered = json!({
            "iteration": nth,
            "promptMode": mode,
            "toolSchemaCount": tools,
            "hasToolSchemas": tools > 0,
        });
        data["promptMessageCount"] = messages.into();
        data["toolSchemaCount"] = tools.into();
        self.spans.model_call = Some((at, data.clone()));
        let mut frames = if nth == 1 { self.stream_started(at) } else { Vec::new() };
        let works = [
            (span("backend.prompt", "build", nth), Status::Succeeded(None), built),
            (span("tool.schema.policy", "project", nth), Status::Succeeded(None), offered),
            (call_span(nth), Status::Started, data),
        ];
        frames.extend(works.map(|(span, status, data)| self.trace(span, status, data, at)));
        frames
    }

    fn stream_started(&mut self, at: Time) -> Vec<Frame> {
        let pictures = self.spans.pictures;
        let data = json!({
            "hasConversationRef": true,
            "hasScreenshotRef": pictures > 0,
            "screenshotRefCount": pictures,
            "hasRuntimeSystemState": self.spans.has_state,
        });
        let mut frames = vec![self.trace(STREAM, Status::Started, data, at)];
        if self.spans.speech {
            let speaks = self.spans.speaks;
            let data = json!({
                "speechModeEnabled": true,
                "hasTtsService": speaks,
                "hasAudioTask": speaks,
                "provider": null,
            });
            let status = if speaks { Status::Started } else { Status::Skipped };
            frames.push(self.trace(span("tts.playback", "session", 1), status, data, at));
        }
        frames
    }

    fn call_ended(&mut self, at: Time) -> Option<Frame> {
        let (since, mut data) = self.spans.model_call.take()?;
        data["responseLength"] = self.step.chars().count().into();
        Some(self.trace(call_span(self.steps), Status::Succeeded(Some(since)), data, at))
    }

    fn call_failed(&mut self, kind: &str, message: &str, at: Time) -> Option<Frame> {
        let (since, mut data) = self.spans.model_call.take()?;
        data["failureKind"] = kind.into();
        let status = Status::Failed(Some(since), kind, message);
        Some(self.trace(call_span(self.steps), status, data, at))
    }

    /// Traces the end of a turn with the type of its last frame, and a model call that ends with it.
    fn end_traces(&mut self, event: &Event, at: Time) -> Vec<Frame> {
        let started = self.spans.started;
        let (call, status, last) = match event {
            Event::TurnCompleted { .. } => (None, Status::Succeeded(started), "streaming-complete"),
            Event::TurnFailed { code, .. } => {
                let call = match code {
                    FailureCode::Model(kind) => {
                        self.call_failed(kind.name(), "the model call failed", at)
                    }
                    _ => None,
                };
                (call, Status::Failed(started, code.name(), "the turn failed"), "error")
            }
            // The start of a turn that was still queued was not traced.
            Event::TurnCancelled { .. } if self.steps > 0 => {
                let (code, message) = ("cancelled", "the turn was stopped");
                let call = self.call_failed(code, message, at);
                (call, Status::Failed(started, code, message), "streaming-complete")
            }
            Event::StepInterrupted { .. } => {
                let call = self.call_failed("interrupted", "the answer broke off", at);
                return call.into_iter().collect();
            }
            _ => return Vec::new(),
        };
        let data = json!({
            "eventCount": self.count,
            "chunkCount": self.spans.chunks,
            "toolCallCount": self.spans.calls,
            "toolOutputCount": self.spans.outputs,
            "sawTerminalEvent": true,
            "terminalEventType": last,
        });
        call.into_iter().chain([self.trace(STREAM, status, data, at)]).collect()
    }
}
