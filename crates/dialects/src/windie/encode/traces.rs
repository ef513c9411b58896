//! What took how long in a turn, for clients that keep it for people who look for trouble. There are
//! counts, names and times in it, and never anything that was said.

use quintet_kernel::event::{Event, FailureCode};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::{Channel, ModelRef, Prompt};
use quintet_kernel::{Item, Time, TurnId};
use serde_json::{Value, json};

use super::Link;
use super::turn_frames::{Frame, TurnFrames};
use crate::windie::agent::builtin_tools;
use crate::windie::wire::query;

/// What of a turn is not over, and what was counted of it.
#[derive(Debug, Default)]
pub(in crate::windie) struct Spans {
    begun: Option<Time>,
    /// Since when the model is asked, and what is known of that.
    asked: Option<(Time, Value)>,
    /// Since when a summary is made.
    summarizing: Option<Time>,
    pictures: usize,
    /// Whether the client told what the desktop is like.
    state: bool,
    /// True if the user wants the answer to be spoken.
    speech: bool,
    /// True if it can be.
    speaks: bool,
    chunks: u64,
    calls: u64,
    outputs: u64,
}

/// A piece of work of a turn.
struct Span {
    path: &'static str,
    stage: &'static str,
    runtime: &'static str,
    /// Which one of the kind it is in its turn.
    nth: u64,
}

/// How it stands.
struct Stand {
    status: &'static str,
    /// When it began, if that is over.
    since: Option<Time>,
    data: Value,
    error: Option<Value>,
}

const STREAM: Span = Span { path: "backend.stream", stage: "stream", runtime: "backend", nth: 1 };
const SPEECH: Span = Span { path: "tts.playback", stage: "session", runtime: "backend", nth: 1 };

fn prompt_span(nth: u64) -> Span {
    Span { path: "backend.prompt", stage: "build", runtime: "backend", nth }
}

fn tools_span(nth: u64) -> Span {
    Span { path: "tool.schema.policy", stage: "project", runtime: "backend", nth }
}

fn call_span(nth: u64) -> Span {
    Span { path: "provider.call", stage: "request", runtime: "provider", nth }
}

fn summary_span(nth: u64) -> Span {
    Span { path: "backend.compaction", stage: "compact", runtime: "backend", nth }
}

impl Stand {
    fn begun(data: Value) -> Self {
        Self { status: "started", since: None, data, error: None }
    }

    fn done(since: Option<Time>, data: Value) -> Self {
        Self { status: "succeeded", since, data, error: None }
    }

    fn skipped(data: Value) -> Self {
        Self { status: "skipped", since: None, data, error: None }
    }

    fn failed(since: Option<Time>, data: Value, (code, message): (&str, &str)) -> Self {
        let error = Some(json!({ "code": code, "message": message }));
        Self { status: "failed", since, data, error }
    }
}

impl Link {
    /// What is told of an item before the messages that say what it is.
    pub(super) fn traced_before(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        let Item::Event(record) = item else { return Vec::new() };
        let at = record.at;
        match &record.event {
            Event::TurnCompleted { turn, .. } => self.with(turn, |line| line.stream_over(at)),
            Event::TurnFailed { turn, code, .. } => {
                self.with(turn, |line| line.stream_failed(*code, at))
            }
            Event::TurnCancelled { turn, .. } => self.with(turn, |line| line.stream_stopped(at)),
            Event::StepInterrupted { turn, .. } => self.with(turn, |line| {
                line.call_failed("interrupted", "the answer broke off", at).into_iter().collect()
            }),
            Event::Compacted { summary, messages, tokens_before, .. } => {
                let data = json!({
                    "reason": self.why(),
                    "strategy": "auto",
                    "beforeTokens": tokens_before,
                    "afterTokens": prompt.map(super::history::weight),
                    "removedMessages": messages,
                    "applied": true,
                    "hasSummary": !summary.is_empty(),
                    "replacementHistoryEntryCount": prompt.map(|prompt| prompt.messages.len()),
                });
                self.summary_over(at, |since| Stand::done(since, data))
            }
            Event::CompactionFailed { .. } => {
                let data = json!({ "reason": self.why(), "strategy": "auto" });
                let error = ("backend_compaction_failed", "the summary could not be made");
                self.summary_over(at, |since| Stand::failed(since, data, error))
            }
            _ => Vec::new(),
        }
    }

    /// What is told of an item after the messages that say what it is.
    pub(super) fn traced_after(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        match item {
            Item::Text { turn, channel: Channel::Text, .. } => self.with(turn, |line| {
                line.spans.chunks += 1;
                Vec::new()
            }),
            Item::Event(record) => self.event_traced(&record.event, prompt, record.at),
            Item::Text { .. } | Item::Progress { .. } => Vec::new(),
        }
    }

    fn event_traced(&mut self, event: &Event, prompt: Option<&Prompt>, at: Time) -> Vec<Frame> {
        match event {
            Event::MessageAdded { turn, role: Role::User, parts, options, .. } => {
                let state = options.aside("system_state_internal").is_some();
                let speech = options.aside(query::SPEECH).is_some();
                let media = parts.iter().filter(|part| matches!(part, Part::Media { .. })).count();
                let speaks = self.optional_events.speech;
                self.with(turn, |line| {
                    line.spans.speaks = speaks;
                    (line.spans.begun, line.spans.pictures) = (Some(at), media);
                    (line.spans.state, line.spans.speech) = (state, speech);
                    Vec::new()
                })
            }
            Event::StepStarted { turn, model, .. } => {
                let sources = prompt.map(|prompt| self.sources(prompt));
                self.with(turn, |line| line.step_begun(model, prompt.zip(sources), at))
            }
            Event::ModelCompleted { turn, .. } => {
                self.with(turn, |line| line.call_over(at).into_iter().collect())
            }
            Event::CallStarted { turn, .. } => self.with(turn, |line| {
                line.spans.calls += 1;
                Vec::new()
            }),
            Event::CallCompleted { turn, .. } => self.with(turn, |line| {
                line.spans.outputs += 1;
                Vec::new()
            }),
            Event::CompactionRequested { tokens, .. } => self.summary_begun(*tokens, at),
            _ => Vec::new(),
        }
    }

    fn with(
        &mut self,
        turn: &TurnId,
        then: impl FnOnce(&mut TurnFrames) -> Vec<Frame>,
    ) -> Vec<Frame> {
        self.line_mut(turn).map(then).unwrap_or_default()
    }

    /// How many of the tools come from where.
    fn sources(&self, prompt: &Prompt) -> Value {
        let (mut builtin, mut client, mut daemon) = (0, 0, 0);
        for tool in &prompt.tools {
            match (self.client.contains(&tool.name), builtin_tools::tool(&tool.name)) {
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

    fn summary_begun(&mut self, tokens: u64, at: Time) -> Vec<Frame> {
        let added = self.summarized_line().map_or(0, |line| line.added);
        let data = json!({
            "reason": self.why(),
            "strategy": "auto",
            "beforeTokens": tokens,
            "projectedTokens": tokens.saturating_add(added),
            "force": self.open.is_none(),
        });
        let told = self.summarized_line().filter(is_of_turn).map(|line| {
            line.spans.summarizing = Some(at);
            line.traced(&summary_span(line.steps + 1), Stand::begun(data), at)
        });
        told.into_iter().collect()
    }

    fn summary_over(&mut self, at: Time, stand: impl FnOnce(Option<Time>) -> Stand) -> Vec<Frame> {
        let told = self.summarized_line().filter(is_of_turn).map(|line| {
            let since = line.spans.summarizing.take();
            line.traced(&summary_span(line.steps + 1), stand(since), at)
        });
        told.into_iter().collect()
    }
}

/// True for what is numbered by a turn: clients drop the spans of a summary that they asked for
/// themselves, and would miss the numbers.
fn is_of_turn(line: &&mut TurnFrames) -> bool {
    line.turn.is_some()
}

impl TurnFrames {
    fn traced(&mut self, span: &Span, stand: Stand, at: Time) -> Frame {
        let Span { path, stage, runtime, nth } = *span;
        let Stand { status, since, data, error } = stand;
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

    /// The model is asked: what for, with which tools, and which one.
    fn step_begun(
        &mut self,
        model: &ModelRef,
        asked: Option<(&Prompt, Value)>,
        at: Time,
    ) -> Vec<Frame> {
        let nth = self.steps;
        let mut data = json!({
            "iteration": nth,
            "modelId": model.model,
            "modelProvider": model.provider,
        });
        // Without the prompt there is nothing to tell.
        let Some((prompt, sources)) = asked else {
            self.spans.asked = Some((at, data));
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
        let mut frames = if nth == 1 { self.stream_begun(at) } else { Vec::new() };
        frames.push(self.traced(&prompt_span(nth), Stand::done(None, built), at));
        frames.push(self.traced(&tools_span(nth), Stand::done(None, offered), at));
        frames.push(self.traced(&call_span(nth), Stand::begun(data.clone()), at));
        self.spans.asked = Some((at, data));
        frames
    }

    fn stream_begun(&mut self, at: Time) -> Vec<Frame> {
        let pictures = self.spans.pictures;
        let data = json!({
            "hasConversationRef": true,
            "hasScreenshotRef": pictures > 0,
            "screenshotRefCount": pictures,
            "hasRuntimeSystemState": self.spans.state,
        });
        let mut frames = vec![self.traced(&STREAM, Stand::begun(data), at)];
        if self.spans.speech {
            let data = json!({
                "speechModeEnabled": true,
                "hasTtsService": self.spans.speaks,
                "hasAudioTask": self.spans.speaks,
                "provider": null,
            });
            let stand = if self.spans.speaks { Stand::begun(data) } else { Stand::skipped(data) };
            frames.push(self.traced(&SPEECH, stand, at));
        }
        frames
    }

    fn call_over(&mut self, at: Time) -> Option<Frame> {
        let (since, mut data) = self.spans.asked.take()?;
        data["responseLength"] = self.written().into();
        Some(self.traced(&call_span(self.steps), Stand::done(Some(since), data), at))
    }

    fn call_failed(&mut self, kind: &str, message: &str, at: Time) -> Option<Frame> {
        let (since, mut data) = self.spans.asked.take()?;
        data["failureKind"] = kind.into();
        let stand = Stand::failed(Some(since), data, (kind, message));
        Some(self.traced(&call_span(self.steps), stand, at))
    }

    fn stream_over(&mut self, at: Time) -> Vec<Frame> {
        let data = self.counted("streaming-complete");
        vec![self.traced(&STREAM, Stand::done(self.spans.begun, data), at)]
    }

    fn stream_failed(&mut self, code: FailureCode, at: Time) -> Vec<Frame> {
        let mut frames: Vec<Frame> = match code {
            FailureCode::Model(kind) => self.call_failed(kind.name(), "the model call failed", at),
            _ => None,
        }
        .into_iter()
        .collect();
        let data = self.counted("error");
        let stand = Stand::failed(self.spans.begun, data, (code.name(), "the turn failed"));
        frames.push(self.traced(&STREAM, stand, at));
        frames
    }

    fn stream_stopped(&mut self, at: Time) -> Vec<Frame> {
        // Of one that waited nobody was told that it began.
        if self.steps == 0 {
            return Vec::new();
        }
        let call = self.call_failed("cancelled", "the turn was stopped", at);
        let data = self.counted("streaming-complete");
        let stand = Stand::failed(self.spans.begun, data, ("cancelled", "the turn was stopped"));
        let mut frames: Vec<Frame> = call.into_iter().collect();
        frames.push(self.traced(&STREAM, stand, at));
        frames
    }

    fn counted(&self, end: &str) -> Value {
        json!({
            "eventCount": self.count(),
            "chunkCount": self.spans.chunks,
            "toolCallCount": self.spans.calls,
            "toolOutputCount": self.spans.outputs,
            "sawTerminalEvent": true,
            "terminalEventType": end,
        })
    }
}
