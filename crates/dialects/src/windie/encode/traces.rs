//! Timing of the parts of a turn, for clients that collect traces. Contains counts, names and times, never
//! message text.

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
pub(crate) struct Spans {
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

/// A piece of work of a turn: what it is, where it is done, and which one of its kind it is.
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

/// How a piece of work stands. What is over began at a time, if that is known; what failed did so with a
/// code and a message.
#[derive(Clone, Copy)]
enum Status<'a> {
    Started,
    Skipped,
    Succeeded(Option<Time>),
    Failed(Option<Time>, &'a str, &'a str),
}

impl Link {
    /// What is told of an item before the messages that say what it is.
    pub(super) fn traced_before(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        let Item::Event(record) = item else { return Vec::new() };
        let at = record.at;
        match &record.event {
            Event::TurnCompleted { turn, .. } => self.with(turn, |line| {
                let status = Status::Succeeded(line.spans.begun);
                vec![line.stream_over("streaming-complete", status, at)]
            }),
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
                self.summary(at, |spans| Status::Succeeded(spans.summarizing.take()), data)
            }
            Event::CompactionFailed { .. } => {
                let data = json!({ "reason": self.why(), "strategy": "auto" });
                let (code, message) =
                    ("backend_compaction_failed", "the summary could not be made");
                self.summary(
                    at,
                    |spans| Status::Failed(spans.summarizing.take(), code, message),
                    data,
                )
            }
            _ => Vec::new(),
        }
    }

    /// What is told of an item after the messages that say what it is.
    pub(super) fn traced_after(&mut self, item: &Item, prompt: Option<&Prompt>) -> Vec<Frame> {
        if let Item::Text { turn, channel: Channel::Text, .. } = item {
            self.line_mut(turn).into_iter().for_each(|line| line.spans.chunks += 1);
        }
        let Item::Event(record) = item else { return Vec::new() };
        let at = record.at;
        match &record.event {
            Event::MessageAdded { turn, role: Role::User, parts, options, .. } => {
                let speaks = self.optional_events.speech;
                if let Some(line) = self.line_mut(turn) {
                    let is_picture = |part: &&Part| matches!(part, Part::Media { .. });
                    line.spans = Spans {
                        begun: Some(at),
                        pictures: parts.iter().filter(is_picture).count(),
                        state: options.front_end_data("system_state_internal").is_some(),
                        speech: options.front_end_data(query::SPEECH).is_some(),
                        speaks,
                        ..Spans::default()
                    };
                }
            }
            Event::StepStarted { turn, model, .. } => {
                let sources = prompt.map(|prompt| self.sources(prompt));
                return self.with(turn, |line| line.step_begun(model, prompt.zip(sources), at));
            }
            Event::ModelCompleted { turn, .. } => {
                return self.with(turn, |line| line.call_over(at).into_iter().collect());
            }
            Event::CallStarted { turn, .. } => {
                self.line_mut(turn).into_iter().for_each(|line| line.spans.calls += 1);
            }
            Event::CallCompleted { turn, .. } => {
                self.line_mut(turn).into_iter().for_each(|line| line.spans.outputs += 1);
            }
            Event::CompactionRequested { tokens, .. } => {
                let added = self.summarized_line().map_or(0, |line| line.added);
                let data = json!({
                    "reason": self.why(),
                    "strategy": "auto",
                    "beforeTokens": tokens,
                    "projectedTokens": tokens.saturating_add(added),
                    "force": self.open.is_none(),
                });
                let begun = |spans: &mut Spans| {
                    spans.summarizing = Some(at);
                    Status::Started
                };
                return self.summary(at, begun, data);
            }
            _ => {}
        }
        Vec::new()
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

    /// A summary that is made in a turn. Clients drop the spans of one that they asked for themselves, and
    /// would miss the numbers.
    fn summary(
        &mut self,
        at: Time,
        status: impl FnOnce(&mut Spans) -> Status<'static>,
        data: Value,
    ) -> Vec<Frame> {
        let line = self.summarized_line().filter(|line| line.turn.is_some());
        let told = line.map(|line| {
            let span = span("backend.compaction", "compact", line.steps + 1);
            let status = status(&mut line.spans);
            line.traced(span, status, data, at)
        });
        told.into_iter().collect()
    }
}

impl TurnFrames {
    fn traced(&mut self, span: Span, status: Status<'_>, data: Value, at: Time) -> Frame {
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
        self.spans.asked = Some((at, data.clone()));
        let mut frames = if nth == 1 { self.stream_begun(at) } else { Vec::new() };
        let works = [
            (span("backend.prompt", "build", nth), Status::Succeeded(None), built),
            (span("tool.schema.policy", "project", nth), Status::Succeeded(None), offered),
            (call_span(nth), Status::Started, data),
        ];
        frames.extend(works.map(|(span, status, data)| self.traced(span, status, data, at)));
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
        let mut frames = vec![self.traced(STREAM, Status::Started, data, at)];
        if self.spans.speech {
            let speaks = self.spans.speaks;
            let data = json!({
                "speechModeEnabled": true,
                "hasTtsService": speaks,
                "hasAudioTask": speaks,
                "provider": null,
            });
            let status = if speaks { Status::Started } else { Status::Skipped };
            frames.push(self.traced(span("tts.playback", "session", 1), status, data, at));
        }
        frames
    }

    fn call_over(&mut self, at: Time) -> Option<Frame> {
        let (since, mut data) = self.spans.asked.take()?;
        data["responseLength"] = self.written().into();
        Some(self.traced(call_span(self.steps), Status::Succeeded(Some(since)), data, at))
    }

    fn call_failed(&mut self, kind: &str, message: &str, at: Time) -> Option<Frame> {
        let (since, mut data) = self.spans.asked.take()?;
        data["failureKind"] = kind.into();
        let status = Status::Failed(Some(since), kind, message);
        Some(self.traced(call_span(self.steps), status, data, at))
    }

    fn stream_failed(&mut self, code: FailureCode, at: Time) -> Vec<Frame> {
        let call = match code {
            FailureCode::Model(kind) => self.call_failed(kind.name(), "the model call failed", at),
            _ => None,
        };
        let status = Status::Failed(self.spans.begun, code.name(), "the turn failed");
        call.into_iter().chain([self.stream_over("error", status, at)]).collect()
    }

    fn stream_stopped(&mut self, at: Time) -> Vec<Frame> {
        // Of one that waited nobody was told that it began.
        if self.steps == 0 {
            return Vec::new();
        }
        let (code, message) = ("cancelled", "the turn was stopped");
        let call = self.call_failed(code, message, at);
        let status = Status::Failed(self.spans.begun, code, message);
        call.into_iter().chain([self.stream_over("streaming-complete", status, at)]).collect()
    }

    /// The turn is over, and what it ends with.
    fn stream_over(&mut self, end: &str, status: Status<'_>, at: Time) -> Frame {
        let data = json!({
            "eventCount": self.count(),
            "chunkCount": self.spans.chunks,
            "toolCallCount": self.spans.calls,
            "toolOutputCount": self.spans.outputs,
            "sawTerminalEvent": true,
            "terminalEventType": end,
        });
        self.traced(STREAM, status, data, at)
    }
}
