//! Tests that the journal's format never changes: what was once written can be read and is written
//! the same today.
//!
//! `UPDATE_GOLDEN=1` adds the lines that are missing; existing lines are never changed or removed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::ClientRef;
use quintet_kernel::approval_id::ApprovalId;
use quintet_kernel::change::{
    FileChange, FileKind, FileVersion, UnlistedChanges, UnrecordedChange,
};
use quintet_kernel::codec;
use quintet_kernel::context::Section;
use quintet_kernel::event::{
    ApprovalDecision, ApprovalMode, ClientCallInfo, DecidedBy, Delegation, Event, FailureCode,
    NewSession, RareOptions, RememberScope, RequestedCall, Setup, StopCause, SubagentUpdate,
    ToolUse, TurnCounts, TurnOptions,
};
use quintet_kernel::id::{BlobId, CallId, GeneratedId, MessageId, SessionId, StepId, TurnId};
use quintet_kernel::message::{Attachment, CallArtifact, MediaKind, Part, Role};
use quintet_kernel::model::{
    Account, Channel, Constraints, Effort, FailureKind, FinishReason, ModelRef, OutputFormat,
    Sampling, SealPosition, Sealed, ToolChoice, Usage,
};
use quintet_kernel::question::{Question, QuestionAnswer, QuestionForm};
use quintet_kernel::time::Time;
use quintet_kernel::tool::{Assessment, CallSubject, Ending, Outcome, Placement, Risk, ToolKind};
use quintet_kernel::toolset::{CallTimeout, ClientTool, Toolset};
use serde_json::{Value, json};

/// All values of an enum without data; a new variant does not compile until it is named here.
macro_rules! every {
    ($type:ident: $($variant:ident)*) => {{
        fn named(value: $type) {
            match value { $($type::$variant => {})* }
        }
        let _ = named;
        [$($type::$variant),*]
    }};
}

/// The kinds of events; a new one does not compile until it is named here, and needs a line then.
macro_rules! kinds {
    ($($variant:ident)*) => {
        const KINDS: &[&str] = &[$(stringify!($variant)),*];

        fn kind(event: &Event) -> &'static str {
            match event { $(Event::$variant { .. } => stringify!($variant)),* }
        }
    };
}

kinds! {
    SessionCreated Forked Labelled ModelSwitched AttachmentAdded MessageAdded TurnStarted StepStarted
    TextAppended ModelRetrying ModelCompleted StepInterrupted VerificationRequested
    ApprovalRequested ApprovalAnswered CallStarted CallCompleted StopRequested TurnResumed TurnHeld TurnReleased
    TurnCompleted TurnFailed TurnCancelled CompactionRequested Compacted CompactionFailed
    SessionClosed ContextGathered ReviewRequested Reviewed RevertRequested Reverted RevertFailed
    ToolsChosen MemorySaved MemoryNotSaved Subagent Instructed Moved Forgotten Superseded
    CallClaimed ClaimHolderLost ClaimReleased QuestionAsked QuestionAnswered
}

#[test]
fn old_lines_are_read_and_written_unchanged() {
    for line in golden().lines() {
        let event = codec::decode(codec::VERSION, line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(codec::encode(&event)).unwrap(), line);
    }
}

#[test]
fn every_kind_of_event_has_a_line() {
    let golden = golden();
    let events = golden.lines().map(|line| codec::decode(codec::VERSION, line.as_bytes()).unwrap());
    let seen: BTreeSet<&str> = events.map(|event| kind(&event)).collect();
    assert_eq!(seen, KINDS.iter().copied().collect());
}

#[test]
fn every_sample_has_a_line() {
    let golden = golden();
    let known: BTreeSet<&str> = golden.lines().collect();
    let today =
        samples().into_iter().map(|event| String::from_utf8(codec::encode(&event)).unwrap());
    let new: BTreeSet<String> = today.filter(|line| !known.contains(line.as_str())).collect();
    if new.is_empty() {
        return;
    }
    assert!(updating(), "UPDATE_GOLDEN=1 adds these lines: {new:#?}");
    let lines = golden.lines().map(str::to_owned).chain(new);
    std::fs::write(path(), lines.map(|line| line + "\n").collect::<String>()).unwrap();
}

#[test]
fn a_newer_format_is_refused() {
    let error = codec::decode(codec::VERSION + 1, b"{}").unwrap_err();
    assert_eq!(error.to_string(), "the event has format 2, and this version reads up to 1");
    assert!(codec::decode(codec::VERSION, b"{\"turn_sta").is_err());
}

#[test]
fn every_blob_reference_is_found() {
    for event in samples() {
        let line = String::from_utf8(codec::encode(&event)).unwrap();
        let kept: BTreeSet<&str> = event.blobs().into_iter().map(BlobId::as_str).collect();
        let for_undo = match &event {
            Event::CallCompleted { outcome, .. } => outcome.changes.as_slice(),
            _ => &[],
        };
        let sides = for_undo.iter().flat_map(|change| [&change.before, &change.after]);
        let undo: BTreeSet<&str> =
            sides.flatten().filter_map(|side| side.blob.as_ref()).map(BlobId::as_str).collect();
        let is_name = |text: &&str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
        for name in line.split('"').filter(is_name) {
            assert!(kept.contains(name) || undo.contains(name), "{name} in {line}");
        }
    }
}

fn golden() -> String {
    std::fs::read_to_string(path()).unwrap_or_default()
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal-v1.ndjson")
}

#[expect(clippy::disallowed_methods, reason = "tests read the environment themselves")]
pub(crate) fn updating() -> bool {
    std::env::var("UPDATE_GOLDEN").is_ok()
}

/// Every event with every value of the enums in it.
pub(crate) fn samples() -> Vec<Event> {
    [
        of_sessions(),
        of_messages(),
        of_steps(),
        of_calls(),
        of_questions(),
        of_turns(),
        of_compaction(),
        of_assessments(),
        of_changes(),
        of_clients(),
    ]
    .concat()
}

fn of_sessions() -> Vec<Event> {
    let (name, mime, blob, size) = ("a.png".into(), "image/png".into(), id::<BlobId>(), 3);
    vec![
        Event::SessionCreated(NewSession {
            workspace: "/work".into(),
            system_prompt: Some("be kind".into()),
            model: Some(model()),
            labels: [("title".to_owned(), "a talk".to_owned())].into(),
            toolset: None,
        }),
        Event::SessionCreated(NewSession { workspace: "/work".into(), ..NewSession::default() }),
        Event::Forked { parent: id::<SessionId>(), at: 7 },
        Event::Labelled { key: "title".into(), value: Some("a talk".into()) },
        Event::Labelled { key: "title".into(), value: None },
        Event::ModelSwitched { model: model() },
        Event::AttachmentAdded(Attachment { name, mime, blob, size }),
        Event::SessionClosed { reason: Some("done".into()), summary: None },
        Event::SessionClosed { reason: None, summary: None },
        Event::SessionClosed { reason: None, summary: Some("all is well".into()) },
    ]
}

fn of_messages() -> Vec<Event> {
    let media = |kind: MediaKind| Part::Media { kind, name: "a.png".into(), mime: None };
    let stated = Part::Media {
        kind: MediaKind::Image,
        name: "a.png".into(),
        mime: Some("image/webp".into()),
    };
    let call = Part::Call { call: id(), tool: "look".into(), input: json!({"p": [1, 2.5, null]}) };
    let mut parts = vec![Part::Text("é\n\"".into()), Part::Thought("hm".into()), call, stated];
    parts.push(Part::Context("The person is in /work.".into()));
    parts.extend(every!(MediaKind: Image Audio File).map(media));
    every!(Role: System User Assistant Tool)
        .map(|role| {
            let parts = parts.clone();
            Event::MessageAdded {
                message: id::<MessageId>(),
                turn: turn(),
                role,
                parts,
                options: TurnOptions::default(),
                nth: 0,
            }
        })
        .into()
}

fn of_steps() -> Vec<Event> {
    let step = id::<StepId>;
    let completed = |finish: FinishReason, message: Option<MessageId>| Event::ModelCompleted {
        turn: turn(),
        step: step(),
        message,
        finish,
        calls: vec![request(None), request(Some("not JSON".into()))],
        usage: usage(),
        sealed: Vec::new(),
        by: None,
    };
    let sealed = [SealPosition::Output(5), SealPosition::Call(0)]
        .map(|place| Sealed { place, content: json!({"signature": "c2ln"}) });
    let finishes =
        [FinishReason::Stop, FinishReason::ToolCalls, FinishReason::Length, FinishReason::Refused];
    let mut events = vec![
        step_started(None, None),
        step_started(Some(128_000), Some(id())),
        Event::ModelRetrying {
            turn: turn(),
            step: step(),
            attempt: 2,
            wait_ms: 500,
            reason: "429".into(),
        },
        interrupted(Some(id()), None),
        interrupted(None, None),
        interrupted(None, Some(500)),
        completed(FinishReason::Other("pause".into()), None),
        Event::ModelCompleted {
            turn: turn(),
            step: step(),
            message: Some(id()),
            finish: FinishReason::ToolCalls,
            calls: vec![request(None)],
            usage: Usage { cache_written: 4, estimated: true, ..usage() },
            sealed: sealed.into(),
            by: Some(model()),
        },
    ];
    events.extend(finishes.map(|finish| match finish {
        FinishReason::Stop
        | FinishReason::ToolCalls
        | FinishReason::Length
        | FinishReason::Refused
        | FinishReason::Other(_) => completed(finish, Some(id())),
    }));
    for channel in every!(Channel: Text Thought) {
        for pieces in [vec![], vec![1, 4]] {
            let (turn, step, text) = (turn(), step(), "Hello".into());
            events.push(Event::TextAppended { turn, step, offset: 5, channel, text, pieces });
        }
    }
    events
}

fn of_calls() -> Vec<Event> {
    let (call, tool) = (id::<CallId>, || "look".to_owned());
    let started = |kind, placement| Event::CallStarted {
        turn: turn(),
        call: call(),
        tool: tool(),
        input: json!({"p": 1}),
        kind,
        placement,
        errand: None,
    };
    let asked = |risk, expires| Event::ApprovalRequested {
        turn: turn(),
        call: call(),
        tool: tool(),
        input: json!({"p": 1}),
        assessment: assessment(risk),
        expires,
    };
    let answered = |answer, by, reason| {
        let (turn, call, tool) = (turn(), call(), tool());
        let remember = RememberScope::Once;
        Event::ApprovalAnswered { turn, call, tool, answer, reason, by, remember }
    };
    let mut events = vec![
        Event::VerificationRequested { turn: turn(), call: request(None) },
        asked(Risk::Low, Some(Time::from_micros(1_735_689_600_000_001))),
    ];
    events.extend(every!(Risk: Low Medium High Critical).map(|risk| asked(risk, None)));
    events.extend(
        every!(ToolKind: Read Write Exec Network Memory Delegate)
            .map(|kind| started(kind, Placement::Daemon)),
    );
    events.extend(
        every!(Placement: Daemon Client).map(|placement| started(ToolKind::Write, placement)),
    );
    events.extend(
        every!(ApprovalDecision: Allow Deny)
            .map(|word| answered(word, DecidedBy::Client, Some("no".into()))),
    );
    events.extend(
        every!(DecidedBy: Client Clock Memory).map(|by| answered(ApprovalDecision::Deny, by, None)),
    );
    events.extend(
        every!(Ending: Succeeded Idle Failed Denied Skipped Cancelled Interrupted TimedOut).map(
            |ending| Event::CallCompleted {
                turn: turn(),
                call: call(),
                tool: tool(),
                message: id(),
                outcome: outcome(ending),
            },
        ),
    );
    events
}

fn of_turns() -> Vec<Event> {
    let options = TurnOptions {
        model: Some(model()),
        sampling: Sampling { max_tokens: Some(100), temperature: Some(0.7), ..Sampling::default() },
        ..TurnOptions::default()
    };
    let format = OutputFormat::Schema { name: "n".into(), schema: json!({}), strict: true };
    let chosen = |tool_choice: ToolChoice, format: OutputFormat| TurnOptions {
        sampling: Sampling {
            constraints: Constraints {
                top_p: Some(0.9),
                stop: vec!["X".into()],
                tool_choice,
                format: Some(format),
            }
            .unless_empty(),
            ..Sampling::default()
        },
        ..TurnOptions::default()
    };
    let chosen = [
        chosen(ToolChoice::Required, OutputFormat::Json),
        chosen(ToolChoice::Named("shell".into()), format),
    ];
    let asking = |asking: ApprovalMode| TurnOptions { asking, ..TurnOptions::default() };
    let tools = |tools: ToolUse| TurnOptions { tools, ..TurnOptions::default() };
    let asked = every!(ApprovalMode: Policy Strict Waived Unattended).map(asking);
    let offered = every!(ToolUse: Offered Withheld).map(tools);
    let waits =
        TurnOptions { answer_within_ms: Some(300_000), queued: true, ..TurnOptions::default() };
    let effort = |effort: Effort| TurnOptions {
        sampling: Sampling { effort: Some(effort), ..Sampling::default() },
        ..TurnOptions::default()
    };
    let efforts = every!(Effort: None Minimal Low Medium High XHigh).map(effort);
    let mut events = vec![
        Event::TurnStarted { turn: turn(), attempt: 2, options },
        Event::TurnStarted { turn: turn(), attempt: 1, options: TurnOptions::default() },
        Event::StopRequested { turn: turn(), cause: StopCause::Cancelled { reason: None } },
        Event::TurnResumed { turn: turn(), after_ms: 1500 },
        Event::TurnHeld { turn: turn(), reason: "a crash".into() },
        Event::TurnReleased { turn: turn() },
        Event::TurnCompleted { turn: turn(), usage: usage(), verified: None },
        Event::TurnCompleted { turn: turn(), usage: usage(), verified: Some(true) },
        Event::TurnCancelled { turn: turn(), reason: Some("enough".into()), usage: usage() },
        Event::TurnCancelled { turn: turn(), reason: None, usage: usage() },
    ];
    let started = |options| Event::TurnStarted { turn: turn(), attempt: 1, options };
    events.extend(efforts.map(started));
    events.extend(asked.into_iter().chain(offered).chain([waits]).chain(chosen).map(started));
    for code in codes() {
        let (turn, message) = (turn(), String::from("no"));
        let cause = StopCause::Failed { code, message: message.clone() };
        events.push(Event::StopRequested { turn: turn.clone(), cause });
        events.push(Event::TurnFailed { turn, code, message, usage: usage() });
    }
    events
}

fn codes() -> Vec<FailureCode> {
    use FailureCode::*;
    let models = every!(FailureKind: RateLimited Unavailable Unauthorized UnknownModel
        ContextOverflow Rejected Cut Stalled Malformed UnsupportedInput Refused);
    let others = [Denied, StepLimit, TokenLimit, TimeLimit, Loop, Unverified, Interrupted];
    let all = models.map(Model).into_iter().chain(others);
    all.inspect(|code| match code {
        // A new code must be added to the list above.
        Model(_) | Denied | StepLimit | TokenLimit | TimeLimit | Loop | Unverified
        | Interrupted => {}
    })
    .collect()
}

fn of_questions() -> Vec<Event> {
    let asked = |form, expires| Event::QuestionAsked {
        turn: turn(),
        call: id(),
        tool: "look".into(),
        id: id(),
        question: Box::new(Question { asker: "db".into(), message: "Which?".into(), form }),
        expires,
    };
    let answered = |answer, reason, by| {
        let (turn, call, tool, id) = (turn(), id(), "look".into(), id());
        Event::QuestionAnswered { turn, call, tool, id, answer, reason, by }
    };
    let content = serde_json::Map::from_iter([("name".to_owned(), json!("Ada"))]);
    let schema = json!({ "properties": { "name": { "type": "string" } }, "type": "object" });
    vec![
        asked(QuestionForm::Schema(schema), None),
        asked(
            QuestionForm::Url("https://a.example/?q=1".into()),
            Some(Time::from_micros(1_735_689_600_000_001)),
        ),
        answered(QuestionAnswer::Accepted { content }, None, Some(DecidedBy::Client)),
        answered(QuestionAnswer::Declined, Some("late".into()), Some(DecidedBy::Clock)),
        answered(QuestionAnswer::Cancelled, None, None),
        subagent(SubagentUpdate::Settled {
            call: ApprovalId::Question(id()),
            answer: Some(ApprovalDecision::Allow),
        }),
    ]
}

fn step_started(context_window: Option<u64>, shortened: Option<MessageId>) -> Event {
    let (turn, step, model) = (turn(), StepId::named("step_1".into()), model());
    Event::StepStarted { turn, step, model, context_window, shortened }
}

fn of_compaction() -> Vec<Event> {
    vec![
        Event::CompactionRequested { upto: id(), tokens: 900, overflow: false },
        Event::CompactionRequested { upto: id(), tokens: 900, overflow: true },
        Event::Compacted {
            upto: id(),
            summary: "in short".into(),
            messages: 4,
            tokens_before: 900,
            tokens_after: None,
            usage: usage(),
            turns: TurnCounts::default(),
            facts: Vec::new(),
        },
        Event::Compacted {
            upto: id(),
            summary: "in short".into(),
            messages: 4,
            tokens_before: 900,
            tokens_after: None,
            usage: usage(),
            turns: TurnCounts::default(),
            facts: vec!["likes tabs".into()],
        },
        Event::MemorySaved { upto: id(), path: "memory/2025-01-01.md".into() },
        Event::MemoryNotSaved { upto: id(), reason: "no room".into() },
        Event::CompactionFailed { reason: "no".into() },
        subagent(SubagentUpdate::Spawned {
            task: "count".into(),
            model: Some(model()),
            delegation: None,
        }),
        subagent(SubagentUpdate::Spawned { task: "count".into(), model: None, delegation: None }),
        subagent(SubagentUpdate::Spawned {
            task: "count".into(),
            model: Some(model()),
            delegation: Some(Box::new(Delegation {
                depth: 1,
                toolset: Toolset { daemon: Some(vec!["look".into()]), ..Toolset::default() },
                options: TurnOptions::default(),
            })),
        }),
        subagent(SubagentUpdate::Progressed { steps: 2, status: "running".into() }),
        subagent(SubagentUpdate::Settled { call: ApprovalId::Turn(turn()), answer: None }),
        subagent(SubagentUpdate::Asked {
            call: ApprovalId::Call(id()),
            tool: "shell".into(),
            input: json!({ "command": "ls" }),
            assessment: Box::new(assessment(Risk::High)),
            expires: None,
        }),
        subagent(SubagentUpdate::Settled {
            call: ApprovalId::Call(id()),
            answer: Some(ApprovalDecision::Deny),
        }),
        subagent(SubagentUpdate::Completed { result: "three".into(), ok: true, usage: usage() }),
        Event::Compacted {
            upto: id(),
            summary: "in short".into(),
            messages: 4,
            tokens_before: 900,
            tokens_after: None,
            usage: usage(),
            turns: TurnCounts { before: 5, after: 1 },
            facts: Vec::new(),
        },
        Event::Compacted {
            upto: id(),
            summary: "in short".into(),
            messages: 4,
            tokens_before: 900,
            tokens_after: Some(300),
            usage: usage(),
            turns: TurnCounts { before: 5, after: 1 },
            facts: Vec::new(),
        },
        Event::MessageAdded {
            message: id(),
            turn: turn(),
            role: Role::User,
            parts: vec![Part::Text("hi".into())],
            options: TurnOptions::default(),
            nth: 3,
        },
    ]
}

fn of_assessments() -> Vec<Event> {
    let (call, tool) = (id::<CallId>, || "look".to_owned());
    let title = "GIT STATUS".to_owned();
    let sections = vec![Section { title, text: " M a.rs".into() }];
    let reviewed = |answer, comment: &str| Event::Reviewed {
        turn: turn(),
        call: call(),
        tool: tool(),
        answer,
        comment: comment.into(),
        usage: usage(),
    };
    let mut judged = assessment(Risk::Medium);
    judged.subject = CallSubject {
        paths: vec!["src/a.rs".into()],
        commands: vec!["cargo test".into()],
        opaque: true,
        similar: Some("changes in src".into()),
        permissions: vec!["use the network".into()],
    };
    let mut events = vec![
        Event::ContextGathered { turn: turn(), sections, tokens: 2 },
        Event::ReviewRequested { turn: turn(), call: call(), tool: tool(), assessment: judged },
        reviewed(Some(ApprovalDecision::Allow), "as asked"),
        reviewed(None, "no answer"),
    ];
    events.extend(every!(RememberScope: Once Same Similar).map(|remember| {
        let (turn, call, tool, reason) = (turn(), call(), tool(), None);
        let (answer, by) = (ApprovalDecision::Allow, DecidedBy::Client);
        Event::ApprovalAnswered { turn, call, tool, answer, reason, by, remember }
    }));
    events
}

fn of_changes() -> Vec<Event> {
    let version = |mode| FileVersion { blob: Some(id()), size: 3, mode, shape: FileKind::File };
    let huge = FileVersion { blob: None, size: 1 << 40, mode: None, shape: FileKind::File };
    let change = |path: &str, before, after| FileChange { path: path.into(), before, after };
    let mut changed = outcome(Ending::Failed);
    changed.changes = vec![
        change("src/a.rs", Some(version(Some(0o644))), Some(version(None))),
        change("new", None, Some(version(None))),
        change("gone", Some(huge), None),
    ];
    let done = |outcome| {
        let (turn, call, tool, message) = (turn(), id(), "edit".into(), id());
        Event::CallCompleted { turn, call, tool, message, outcome }
    };
    let gap = |path: &str, paths| UnrecordedChange {
        path: path.into(),
        paths,
        reason: "too much".into(),
    };
    let mut linked = outcome(Ending::Failed);
    linked.changes = [FileKind::File, FileKind::Link]
        .map(|shape| change("link", None, Some(FileVersion { shape, ..version(None) })))
        .into();
    let mut shaped = outcome(Ending::Succeeded);
    shaped.changes = every!(FileKind: File Link Folder Pipe Socket Other)
        .map(|shape| change("shape", None, Some(FileVersion { shape, ..version(None) })))
        .into();
    linked.unrecorded = vec![gap("target", Some(12)), gap("", None)];
    linked.more_changes = Some(UnlistedChanges { count: 3, blob: Some(id()) });
    shaped.more_changes = Some(UnlistedChanges { count: 3, blob: None });
    let turn = turn();
    vec![
        done(changed),
        done(linked),
        Event::RevertRequested { turn: turn.clone() },
        Event::Reverted {
            turn: turn.clone(),
            files: vec!["src/a.rs".into(), "new".into()],
            more: 0,
            reapplied: false,
        },
        Event::Reverted { turn: turn.clone(), files: vec!["a".into()], more: 7, reapplied: true },
        Event::RevertFailed { turn, reason: "new was changed since".into() },
        done(shaped),
    ]
}

fn of_clients() -> Vec<Event> {
    let tool = |risk| ClientTool {
        name: "open_app".into(),
        description: "opens an app".into(),
        schema: json!({"type": "object"}),
        risk,
        repeatable: false,
        front_end: None,
        strict: false,
    };
    let chosen = |daemon, client, timeout_ms| {
        Event::ToolsChosen(Toolset { daemon, client, timeout_ms, spans: vec![] })
    };
    let span = CallTimeout {
        tool: "run".into(),
        seconds: [("for".to_owned(), 60)].into(),
        spare: 15,
        unless: Some("detached".into()),
        at_most: 900,
    };
    let worded = TurnOptions { wording: Some("<q>hi</q>".into()), ..TurnOptions::default() };
    let recalled = TurnOptions { recalled: true, ..TurnOptions::default() };
    let account = Account { space: "front".into(), name: "u1".into() };
    let more = RareOptions {
        account: Some(account),
        front_end_data: json!({"frame": 1}),
        ..RareOptions::default()
    };
    let paid = TurnOptions { more: more.unless_empty(), ..TurnOptions::default() };
    let more = RareOptions { result_of: Some(id()), ..RareOptions::default() };
    let answered =
        TurnOptions { recalled: true, more: more.unless_empty(), ..TurnOptions::default() };
    let message = |options| Event::MessageAdded {
        message: id(),
        turn: turn(),
        role: Role::User,
        parts: vec![Part::Text("hi".into())],
        options,
        nth: 2,
    };
    let client_call = |reason, expires, front_end| Event::CallStarted {
        turn: turn(),
        call: id(),
        tool: "open_app".into(),
        input: json!({"app_id": "notion"}),
        kind: ToolKind::Network,
        placement: Placement::Client,
        errand: Some(ClientCallInfo { risk: Risk::Medium, reason, expires, front_end }),
    };
    let key = TurnOptions { key: Some("k1".into()), ..TurnOptions::default() };
    let setup = Setup {
        system_prompt: Some("be brief".into()),
        toolset: Some(Toolset::default()),
        workspace: Some("/repo".into()),
    };
    let more = RareOptions { setup: Some(Arc::new(setup)), ..RareOptions::default() };
    let queued = TurnOptions { queued: true, more: more.unless_empty(), ..TurnOptions::default() };
    let connected = ClientRef::connected("front/u1", "c7");
    let until = Time::from_micros(1_735_689_600_000_001);
    vec![
        message(queued),
        Event::CallClaimed { turn: turn(), call: id(), by: connected.clone() },
        Event::CallClaimed { turn: turn(), call: id(), by: ClientRef::named("front") },
        Event::ClaimHolderLost { turn: turn(), call: id(), by: connected, until },
        Event::ClaimReleased { turn: turn(), call: id() },
        Event::ToolsChosen(Toolset {
            client: vec![ClientTool { repeatable: true, ..tool(Risk::Low) }],
            ..Toolset::default()
        }),
        Event::ToolsChosen(Toolset {
            client: vec![ClientTool { front_end: Some("front".into()), ..tool(Risk::Low) }],
            ..Toolset::default()
        }),
        chosen(None, vec![], None),
        Event::ToolsChosen(Toolset { spans: vec![span], ..Toolset::default() }),
        message(worded),
        message(recalled),
        message(paid),
        message(answered),
        Event::Instructed { system_prompt: None },
        Event::Instructed { system_prompt: Some("be brief".into()) },
        Event::Moved { workspace: "/repo".into() },
        Event::Forgotten { upto: id() },
        Event::Superseded { from: turn() },
        chosen(Some(vec!["look".into()]), vec![tool(Risk::Low), tool(Risk::Critical)], Some(3)),
        client_call(None, None, None),
        client_call(None, None, Some("front".into())),
        client_call(Some("to plan".into()), Some(Time::from_micros(1_735_689_600_000_001)), None),
        Event::MessageAdded {
            message: id(),
            turn: turn(),
            role: Role::User,
            parts: vec![Part::Text("hi".into())],
            options: key.clone(),
            nth: 0,
        },
        Event::TurnStarted { turn: turn(), attempt: 1, options: key },
    ]
}

fn assessment(risk: Risk) -> Assessment {
    Assessment {
        risk,
        reasons: vec!["it bites".into()],
        reversible: true,
        preview: "rm -r".into(),
        subject: CallSubject::default(),
        settled: None,
    }
}

fn outcome(ending: Ending) -> Outcome {
    let (name, mime, blob, size) = ("out.txt".into(), "text/plain".into(), id(), 3);
    let plain = ending == Ending::Succeeded;
    Outcome {
        ending,
        parts: vec![Part::Text("found".into())],
        error: (!plain).then(|| "why".into()),
        artifacts: if plain { vec![CallArtifact { name, mime, blob, size }] } else { Vec::new() },
        changes: Vec::new(),
        more_changes: None,
        unrecorded: Vec::new(),
        front_end_data: Value::Null,
    }
}

fn interrupted(message: Option<MessageId>, context_window: Option<u64>) -> Event {
    let (turn, step, reason) = (turn(), id(), "cut".into());
    Event::StepInterrupted { turn, step, message, reason, context_window }
}

fn request(malformed: Option<String>) -> RequestedCall {
    RequestedCall { id: id(), tool: "look".into(), input: json!({"p": 1}), malformed }
}

fn id<I: GeneratedId>() -> I {
    I::named(format!("{}1", I::PREFIX))
}

fn turn() -> TurnId {
    id()
}

fn model() -> ModelRef {
    ModelRef::parse("fake/a").unwrap()
}

fn usage() -> Usage {
    Usage { input: 10, output: 2, cached: 3, reasoning: 1, ..Usage::default() }
}

fn subagent(news: SubagentUpdate) -> Event {
    Event::Subagent { turn: turn(), call: id(), session: id(), news }
}
