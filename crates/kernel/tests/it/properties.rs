//! Tests that sessions stay consistent whatever clients, models, tools and the clock do, and can be
//! recovered after every event.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use quintet_kernel::change::{FileChange, FileKind, FileVersion, UnrecordedChange};
use quintet_kernel::command::{
    Approve, Command, ImportedMessage, NewAttachment, NewMessage, TurnStart,
};
use quintet_kernel::context::Section;
use quintet_kernel::event::{
    ApprovalDecision, ApprovalMode, Budget, Event, RememberScope, Setup, SubagentUpdate, ToolUse,
    TurnOptions,
};
use quintet_kernel::id::{
    BlobId, CallId, GeneratedId, MessageId, QuestionId, SessionId, StepId, TurnId,
};
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::model::{self, Channel, Failure, FailureKind, FinishReason, RawToolCall};
use quintet_kernel::model::{ModelRef, SealPosition, Sealed, Usage};
use quintet_kernel::policy::{Action, OnDeny, Pattern, Recovery, ReviewMode, Rule, Rules};
use quintet_kernel::question::{Question, QuestionForm};
use quintet_kernel::session::{Turn, TurnStatus, next};
use quintet_kernel::subagent::Task;
use quintet_kernel::tool::{Assessment, CallSubject, Outcome, Risk, ToolKind};
use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{ClientRef, State, codec, snapshot};
use serde_json::json;

use crate::world::{PendingWork, TOOLS, World, approval, assessment, reviewed, rules, successful};

/// One step of a random test. Numbers select one of the available items.
#[derive(Clone, Debug)]
enum Op {
    /// Executes one of the effects.
    Do(usize, Behavior),
    /// A client sends a request.
    Request(Request),
    /// A late or unexpected report.
    Late(usize, Behavior),
    /// Seconds pass.
    Pass(u64),
    /// The daemon crashes and restarts.
    Crash,
    Wake,
}

#[derive(Clone, Debug)]
enum Request {
    Create,
    Say { run: bool, model: usize, role: bool, media: bool },
    Queue { asking: usize, talk: bool, setup: usize },
    CancelTurn(usize),
    Import { instead: bool },
    Supersede { turn: usize, replaced: bool },
    SetSystemPrompt(u8),
    SetWorkspace(u8),
    Start(usize),
    Approve { call: usize, allow: bool, turn: Option<usize> },
    Cancel,
    Compact,
    CompactWith,
    Close,
    Label(u8),
    Switch(usize),
    Attach(usize),
    Revert(usize),
    SetTools { own: bool, within: bool },
    Claim(usize),
    Disconnect(usize),
    Return(usize),
    Keyed(usize),
    Ask { call: usize, link: bool },
    Reply { question: usize, fits: bool },
}

/// The most common request.
const PLAIN: Request = Request::Say { run: true, model: 0, role: false, media: false };

/// Behavior an effect is executed.
#[derive(Clone, Debug)]
struct Behavior {
    ok: bool,
    text: Option<String>,
    calls: Vec<(usize, usize)>,
    tokens: u64,
    failure: usize,
}

const MODELS: [&str; 3] = ["small/a", "large/b", "none/c"];
const NAMES: [&str; 5] = ["", "c1", "c2", "a/b", "c3"];
const ARGUMENTS: [&str; 6] = ["", "{}", r#"{"p":1}"#, r#"{"p":[0.1,-1e-7]}"#, "{broken", "[]"];
const FILES: [&str; 4] = ["a.png", "dir/a.png", "notes", ".."];

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_session_stays_consistent_and_recovers_from_every_event(
        rules in some_rules(),
        ops in prop::collection::vec(some_op(), 0..100),
    ) {
        let mut world = World::new(rules);
        world.create();
        for op in ops {
            apply_op(&mut world, op);
        }
        world.check_journal();
        recover_after_every_event(&world);
        fork_after_every_event(&world);
        restore_after_every_event(&world);
        world.settle();
        world.check_journal();
    }

    #[test]
    fn arguments_survive_encoding(numbers in prop::collection::vec(any::<f64>(), 1..5)) {
        let mut world = World::new(rules());
        world.create();
        apply_op(&mut world, Op::Request(PLAIN));
        let arguments = serde_json::to_string(&numbers).unwrap();
        let call = RawToolCall { id: "c1".into(), tool: "look".into(), arguments };
        let Some(PendingWork::Model(step)) = world.pending_work().pop() else { panic!("no model call is open") };
        let (finish, usage) = (FinishReason::ToolCalls, Usage::default());
        let answer = model::ModelResponse::new(finish, vec![call], usage);
        world.send(Command::ModelCompleted { step, answer });
        world.check_journal();
    }

    #[test]
    fn no_bytes_make_the_codec_panic(version in 0..3_u16, bytes in any::<Vec<u8>>()) {
        let _ = codec::decode(version, &bytes);
    }
}

/// Tests a crash after every event; long journals are sampled.
fn recover_after_every_event(world: &World) {
    let mut state = State::new(world.state.id.clone(), world.state.rules().clone().into());
    let stride = world.journal.len() / 40 + 1;
    for (n, record) in world.journal.iter().enumerate() {
        state.replay([&**record]);
        if n % stride == 0 {
            let mut crashed = world.crashed(&state, n + 1);
            crashed.send(Command::Recover { interrupted: Vec::new() });
            crashed.settle();
            crashed.check_journal();
        }
    }
}

/// Checks that a snapshot after any event, plus the later events, gives the same session.
fn restore_after_every_event(world: &World) {
    let (id, rules) = (&world.state.id, Arc::new(world.state.rules().clone()));
    let mut state = State::new(id.clone(), Arc::clone(&rules));
    let stride = world.journal.len() / 40 + 1;
    for (n, record) in world.journal.iter().enumerate() {
        state.replay([&**record]);
        if n % stride == 0 {
            let mut restored = snapshot::restore(&snapshot::take(&state), id, &rules).unwrap();
            assert_eq!(restored, state);
            restored.replay(world.journal[n + 1..].iter().map(|record| &**record));
            assert_eq!(restored, world.state);
        }
    }
}

/// Forks the session after every event; long journals are sampled.
fn fork_after_every_event(world: &World) {
    let mut state = State::new(world.state.id.clone(), world.state.rules().clone().into());
    let stride = world.journal.len() / 40 + 1;
    for (n, record) in world.journal.iter().enumerate() {
        state.replay([&**record]);
        if n % stride == 0 {
            let mut fork = world.forked(&state, n + 1);
            assert_eq!(next(&fork.state), vec![], "a fork executes effects of its parent");
            fork.send(Command::Recover { interrupted: Vec::new() });
            assert!(!fork.state.busy(), "a turn of the parent is open: {:?}", fork.state.open);
            fork.check_journal();
            apply_op(&mut fork, Op::Request(PLAIN));
            fork.settle();
            fork.check_journal();
        }
    }
}

fn apply_op(world: &mut World, op: Op) {
    let command = match op {
        Op::Do(which, how) => {
            let pending_work = world.pending_work();
            match pick(&pending_work, which).cloned() {
                Some(pending_work) => return execute(world, pending_work, how),
                None if which.is_multiple_of(2) => request_command(world, Request::Start(which)),
                None => request_command(world, PLAIN),
            }
        }
        Op::Request(request) => request_command(world, request),
        Op::Late(which, how) => late(world, which, &how),
        Op::Pass(seconds) => {
            world.now = world.now.after(Duration::from_secs(seconds));
            return;
        }
        Op::Crash => Command::Recover { interrupted: Vec::new() },
        Op::Wake => Command::Wake,
    };
    world.send(command);
}

fn execute(world: &mut World, pending_work: PendingWork, how: Behavior) {
    let failure = || Outcome::failure("no");
    let command = match pending_work {
        PendingWork::Model(step) => {
            write(world, &step, &how);
            answered(step, how)
        }
        PendingWork::GatherContext(turn) => {
            let text = how.text.unwrap_or_default();
            Command::ContextGathered {
                turn,
                sections: vec![Section { title: "TREE".into(), text }],
            }
        }
        PendingWork::Review(call) if !how.ok => {
            reviewed(call, how.text.is_some().then_some(ApprovalDecision::Deny))
        }
        PendingWork::Revert(turn) if !how.ok => {
            Command::RevertFinished { turn, result: Err("no".into()) }
        }
        PendingWork::Run(call) if how.ok && how.text.is_some() => {
            Command::CallFinished { call, outcome: changing(&how) }
        }
        PendingWork::Assess(call) => {
            let mut assessment = assessment();
            assessment.subject = subject(how.failure);
            Command::Assessed { call, assessment: assessment.into() }
        }
        PendingWork::Approve(call) if how.ok && how.text.is_some() => Command::Approve(Approve {
            remember: RememberScope::Similar,
            ..approval(call, ApprovalDecision::Allow)
        }),
        PendingWork::Approve(call) if !how.ok => {
            Command::Approve(approval(call, ApprovalDecision::Deny))
        }
        PendingWork::Run(call) | PendingWork::Report(call) if !how.ok => {
            Command::CallFinished { call, outcome: failure() }
        }
        PendingWork::Save(upto) if !how.ok => {
            Command::MemorySaved { upto, result: Err("no".into()) }
        }
        PendingWork::Summarize(_) if !how.ok => Command::SummaryFailed { reason: "no".into() },
        PendingWork::Approve(_)
        | PendingWork::Run(_)
        | PendingWork::Report(_)
        | PendingWork::Summarize(_)
        | PendingWork::Save(_)
        | PendingWork::Review(_)
        | PendingWork::Revert(_)
        | PendingWork::Cancel(_)
        | PendingWork::Release(_) => successful(&world.state, pending_work),
    };
    world.send(command);
}

fn ask(call: CallId, link: bool) -> Command {
    let form = if link {
        QuestionForm::Url("https://a.example".into())
    } else {
        let properties = json!({ "n": { "type": "integer" } });
        QuestionForm::Schema(json!({ "properties": properties, "required": ["n"] }))
    };
    let question = Question { asker: "db".into(), message: "Which?".into(), form };
    Command::AskUser { call, question: Box::new(question) }
}

fn reply(world: &World, n: usize, fits: bool) -> Command {
    let open = world.state.open.iter().flat_map(|open| &open.questions);
    let open: Vec<QuestionId> = open.map(|open| open.id.clone()).collect();
    let id = open.get(n % open.len().max(1)).cloned();
    let question = id.unwrap_or_else(|| QuestionId::named("question_0".into())).into();
    let content = Some(if fits { json!({ "n": 1 }) } else { json!({ "n": "one" }) });
    let answer = approval(call(world, n), ApprovalDecision::Allow);
    Command::Approve(Approve { question, content, ..answer })
}

fn subject(n: usize) -> CallSubject {
    let path = [".env", "src/a.rs", "docs/b.md"][n % 3];
    let similar = Some(path.to_owned());
    CallSubject {
        paths: vec![path.into()],
        similar,
        opaque: n.is_multiple_of(5),
        ..CallSubject::default()
    }
}

/// A call that changed a file.
fn changing(how: &Behavior) -> Outcome {
    let version = |n: usize| FileVersion {
        blob: Some(BlobId::named(format!("b{n}"))),
        size: how.tokens,
        mode: None,
        shape: match how.tokens % 7 {
            0 => FileKind::Link,
            1 => FileKind::Folder,
            _ => FileKind::File,
        },
    };
    let (before, after) = (how.failure % 3, how.failure % 5);
    let mut outcome = Outcome::success("changed");
    outcome.changes = vec![FileChange {
        path: how.text.clone().unwrap_or_default(),
        before: (before > 0).then(|| version(before)),
        after: (after > 0).then(|| version(after)),
    }];
    let (path, reason) = (how.text.clone().unwrap_or_default(), "too much".to_owned());
    outcome.unrecorded = vec![UnrecordedChange { path, paths: Some(how.tokens), reason }];
    outcome
}

fn write(world: &mut World, step: &StepId, how: &Behavior) {
    let Some(text) = &how.text else { return };
    let written = |world: &World| {
        let step = world.state.open.as_ref().and_then(|open| open.step());
        step.map_or(0, |step| step.written)
    };
    for channel in [Channel::Thought, Channel::Text, Channel::Text] {
        let (step, offset, text) = (step.clone(), written(world), text.clone());
        world.send(Command::ModelOutput { step, offset, channel, text, pieces: Vec::new() });
    }
}

fn answered(step: StepId, how: Behavior) -> Command {
    use FailureKind::*;
    if !how.ok {
        let kinds = [ContextOverflow, ContextOverflow, Cut, RateLimited];
        let failure = Failure { kind: kinds[how.failure % kinds.len()], message: "no".into() };
        return Command::ModelFailed { step, failure };
    }
    let call = |(tool, arguments): (usize, usize)| RawToolCall {
        id: NAMES[(tool + arguments) % NAMES.len()].into(),
        tool: TOOLS[tool % TOOLS.len()].into(),
        arguments: ARGUMENTS[arguments % ARGUMENTS.len()].into(),
    };
    let calls = how.calls.into_iter().map(call).collect();
    let usage = Usage { input: how.tokens, output: how.tokens, ..Usage::default() };
    let places = [SealPosition::Output(how.tokens % 9), SealPosition::Call(how.tokens % 3)];
    let sealed = places.map(|place| Sealed { place, content: "c2VhbA==".into() }).into();
    let answer = model::ModelResponse {
        sealed,
        ..model::ModelResponse::new(FinishReason::Stop, calls, usage)
    };
    Command::ModelCompleted { step, answer }
}

fn request_command(world: &World, request: Request) -> Command {
    let model = |n: usize| ModelRef::parse(MODELS[n % MODELS.len()]).unwrap();
    match request {
        Request::Create => create_again(world),
        Request::Say { run, model: n, role, media } => {
            let mut parts = vec![Part::Text("hi".into())];
            if media {
                let (kind, name) = (MediaKind::Image, "a.png".into());
                parts.push(Part::Media { kind, name, mime: None });
            }
            let role = if role && !run { Role::System } else { Role::User };
            let run = if run { TurnStart::Now } else { TurnStart::Later };
            let options =
                TurnOptions { model: (n > 0).then(|| model(n)), ..TurnOptions::default() };
            Command::AddMessage(Box::new(NewMessage::new(role, parts, run, options)))
        }
        Request::Queue { asking, talk, setup: n } => {
            let ways = [
                ApprovalMode::Policy,
                ApprovalMode::Strict,
                ApprovalMode::Waived,
                ApprovalMode::Unattended,
            ];
            let asking = ways[asking % ways.len()];
            let tools = if talk { ToolUse::Withheld } else { ToolUse::Offered };
            let options = TurnOptions { asking, tools, ..TurnOptions::default() };
            let (role, parts) = (Role::User, vec![Part::Text("next".into())]);
            Command::AddMessage(Box::new(NewMessage {
                setup: setup(n),
                ..NewMessage::new(role, parts, TurnStart::Queued, options)
            }))
        }
        Request::CancelTurn(n) => Command::CancelTurn { turn: turn(world, n), reason: None },
        Request::Supersede { turn: n, replaced: false } => {
            Command::Supersede { from: turn(world, n) }
        }
        Request::Supersede { turn: n, replaced: true } => {
            let parts = vec![Part::Text("instead".into())];
            let supersedes = Some(turn(world, n));
            let say = NewMessage::new(Role::User, parts, TurnStart::Queued, TurnOptions::default());
            Command::AddMessage(Box::new(NewMessage { supersedes, ..say }))
        }
        Request::Import { instead } => {
            let message = |role| ImportedMessage::text(role, "once".into());
            let messages = vec![message(Role::User), message(Role::Assistant)];
            Command::ImportMessages { messages, instead }
        }
        Request::SetSystemPrompt(n) => {
            Command::SetSystemPrompt { system_prompt: (n > 0).then(|| format!("be {n}")) }
        }
        Request::SetWorkspace(n) => {
            Command::SetWorkspace { workspace: format!("/some/{n}").into() }
        }
        Request::Start(n) => Command::StartTurn { turn: turn(world, n) },
        Request::Approve { call: n, allow, turn: of } => {
            let answer = if allow { ApprovalDecision::Allow } else { ApprovalDecision::Deny };
            let turn = of.map(|n| turn(world, n));
            Command::Approve(Approve { turn, ..approval(call(world, n), answer) })
        }
        Request::Ask { call: n, link } => ask(call(world, n), link),
        Request::Reply { question: n, fits } => reply(world, n, fits),
        Request::Cancel => Command::Cancel { reason: None },
        Request::Compact => Command::Compact,
        Request::CompactWith => Command::CompactWith { summary: "in short".into() },
        Request::Close => Command::Close { reason: None },
        Request::Label(n) => {
            Command::SetLabel { key: "k".into(), value: (n > 0).then(|| n.to_string()) }
        }
        Request::Switch(n) => Command::SwitchModel(model(n)),
        Request::SetTools { own, within } => Command::SetTools(Toolset {
            daemon: own.then(|| vec!["look".into(), "edit".into()]),
            client: own.then(own_tool).into_iter().collect(),
            timeout_ms: within.then_some(20_000),
            spans: Vec::new(),
        }),
        Request::Return(n) => {
            let by = client(n % 3);
            Command::ReturnResult { call: call(world, n), by, outcome: Outcome::success("there") }
        }
        Request::Keyed(n) => {
            let options =
                TurnOptions { key: Some(format!("k{}", n % 3)), ..TurnOptions::default() };
            let parts = vec![Part::Text("hi".into())];
            Command::AddMessage(Box::new(NewMessage::new(
                Role::User,
                parts,
                TurnStart::Now,
                options,
            )))
        }
        Request::Claim(n) => {
            let (calls, by) = (vec![call(world, n)], client(n % 3));
            Command::ClaimCalls { calls, by, came_back: n % 2 == 0 }
        }
        Request::Disconnect(n) => Command::Disconnect { client: client(n) },
        Request::Revert(n) if n % 3 == 0 => Command::Reapply { turn: turn(world, n * 4) },
        Request::Revert(n) => Command::Revert { turn: turn(world, n * 4) },
        Request::Attach(n) => attach(n),
    }
}

fn create_again(world: &World) -> Command {
    let origin = world.journal.iter().find_map(|record| match &record.event {
        Event::SessionCreated(origin) => Some(origin.clone()),
        _ => None,
    });
    Command::Create(origin.unwrap())
}

fn attach(n: usize) -> Command {
    let (name, mime) = (FILES[n % FILES.len()].into(), "image/png".into());
    let upload = NewAttachment { name, mime, blob: BlobId::named("b10b".into()), size: 3 };
    if !n.is_multiple_of(3) {
        return Command::Attach(upload);
    }
    let run = if n.is_multiple_of(2) { TurnStart::Now } else { TurnStart::Queued };
    let parts = vec![Part::Text("look".into())];
    let message = NewMessage::new(Role::User, parts, run, TurnOptions::default());
    let files = vec![(MediaKind::Image, upload.clone()), (MediaKind::Image, upload)];
    Command::AddMessage(Box::new(NewMessage { files, ..message }))
}

fn client(n: usize) -> ClientRef {
    ClientRef::connected(if n == 2 { "b" } else { "a" }, n.to_string())
}

fn setup(n: usize) -> Setup {
    Setup {
        system_prompt: (n > 1).then(|| format!("be {n}")),
        toolset: (n == 3).then(|| Toolset { client: vec![own_tool()], ..Toolset::default() }),
        workspace: (n > 2).then(|| format!("/some/{n}").into()),
    }
}

/// A client tool that shadows a daemon tool, or none.
fn own_tool() -> ClientTool {
    let (name, description, schema) = ("nonsense".into(), String::new(), json!({}));
    ClientTool {
        name,
        description,
        schema,
        risk: Risk::Medium,
        repeatable: true,
        front_end: None,
        strict: false,
    }
}

fn late(world: &World, which: usize, how: &Behavior) -> Command {
    let (step, n) = (step(world, which / 12), which / 12);
    let (call, text) = (call(world, n), how.text.clone().unwrap_or_default());
    match which % 12 {
        0 => answered(step, how.clone()),
        1 => {
            let (offset, channel, pieces) = (how.tokens, Channel::Text, vec![1, how.tokens as u32]);
            Command::ModelOutput { step, offset, channel, text, pieces }
        }
        2 => Command::ModelRetrying { step, attempt: 2, wait_ms: 1, reason: text },
        3 => Command::Assessed { call, assessment: assessment().into() },
        4 => Command::CallFinished { call, outcome: Outcome::failure("late") },
        5 => {
            let upto = message(world, n);
            Command::SummaryWritten { upto, summary: text, usage: Usage::default() }
        }
        6 => Command::SummaryFailed { reason: text },
        7 => Command::ContextGathered { turn: turn(world, n), sections: vec![] },
        8 => Command::RevertFinished { turn: turn(world, n), result: Ok(()) },
        9 => Command::MemorySaved { upto: message(world, n), result: Ok(text) },
        10 if how.tokens % 5 == 4 => Command::SpawnSubagent {
            call,
            session: SessionId::named("sub".into()),
            task: Task { text, model: None, tools: None, budget: Budget::default() },
        },
        10 => subagent(call, how),
        _ => reviewed(call, None),
    }
}

/// An update of a subagent of a call that runs or has ended.
fn subagent(call: CallId, how: &Behavior) -> Command {
    let (text, usage) = (how.text.clone().unwrap_or_default(), Usage::default());
    let news = match (how.ok, how.failure % 2) {
        (true, _) => SubagentUpdate::Progressed { steps: how.tokens, status: text },
        (false, 0) if how.tokens.is_multiple_of(2) => approval_update(text),
        (false, 0) => {
            SubagentUpdate::Settled { call: CallId::named("asks".into()).into(), answer: None }
        }
        (false, _) => SubagentUpdate::Completed { result: text, ok: true, usage },
    };
    Command::Subagent { call, session: SessionId::named("sub".into()), news }
}

fn approval_update(tool: String) -> SubagentUpdate {
    let assessment = Assessment {
        risk: Risk::Low,
        reasons: Vec::new(),
        reversible: true,
        preview: String::new(),
        subject: CallSubject::default(),
        settled: None,
    };
    SubagentUpdate::Asked {
        call: CallId::named("asks".into()).into(),
        tool,
        input: json!({}),
        assessment: Box::new(assessment),
        expires: None,
    }
}

fn pick<T>(all: &[T], n: usize) -> Option<&T> {
    all.get(n % all.len().max(1))
}

/// Usually a turn that has not succeeded.
fn turn(world: &World, n: usize) -> TurnId {
    let open = |turn: &&Turn| n.is_multiple_of(4) || turn.status != TurnStatus::Succeeded;
    let turns: Vec<&Turn> = world.state.turns.iter().filter(open).collect();
    let known = pick(&turns, n / 4).map(|turn| turn.id.clone());
    known.unwrap_or_else(|| TurnId::named("turn_0".into()))
}

fn message(world: &World, n: usize) -> MessageId {
    let known = pick(&world.state.messages, n).map(|message| message.id.clone());
    known.unwrap_or_else(|| MessageId::named("msg_0".into()))
}

fn step(world: &World, n: usize) -> StepId {
    let steps = world.journal.iter().filter_map(|record| match &record.event {
        Event::StepStarted { step, .. } => Some(step.clone()),
        _ => None,
    });
    let known = pick(&steps.collect::<Vec<_>>(), n).cloned();
    known.unwrap_or_else(|| StepId::named("step_0".into()))
}

fn call(world: &World, n: usize) -> CallId {
    let calls = world.journal.iter().flat_map(|record| match &record.event {
        Event::ModelCompleted { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
        Event::VerificationRequested { call, .. } => vec![call.id.clone()],
        _ => Vec::new(),
    });
    let known = pick(&calls.collect::<Vec<_>>(), n).cloned();
    known.unwrap_or_else(|| CallId::named("call_0".into()))
}

fn some_rules() -> impl Strategy<Value = Rules> {
    let approval =
        (prop::sample::subsequence(ToolKind::ALL.to_vec(), 0..3), any::<bool>(), any::<bool>());
    let limits = (1..8_u32, 1..4_u32, 60..600_u64, prop::bool::weighted(0.2));
    let recovery = prop::sample::select(vec![Recovery::Continue, Recovery::Ask, Recovery::Leave]);
    let review = prop::sample::select(vec![ReviewMode::Off, ReviewMode::Request, ReviewMode::Auto]);
    let looks = (review, prop::bool::weighted(0.5), any::<bool>());
    (approval, limits, recovery, (any::<bool>(), 0..3_u32), looks).prop_map(
        |((kinds, fail, expire), (steps, repeats, time, few), recovery, verify, looks)| {
            let ((auto, attempts), (review, survey, ruled)) = (verify, looks);
            let mut rules = rules();
            rules.approval.kinds = kinds;
            rules.approval.on_deny = if fail { OnDeny::Fail } else { OnDeny::Continue };
            rules.approval.expires = expire.then(|| Duration::from_secs(30));
            rules.limits.steps = steps;
            rules.limits.repeats = repeats;
            rules.limits.time = Duration::from_secs(time);
            rules.limits.tokens = if few { 150 } else { u64::MAX };
            rules.recovery = recovery;
            rules.review = review;
            rules.context_tokens = if survey { 100 } else { 0 };
            rules.save_memory = survey;
            rules.approval.rules = if ruled { by_path() } else { vec![] };
            rules.verify.auto = auto;
            rules.verify.attempts = attempts;
            rules
        },
    )
}

/// Rules that can only be decided after an assessment.
fn by_path() -> Vec<Rule> {
    let rule = |pattern, action| {
        let (kind, tool, command, reason) = (None, None, None, None);
        Rule { kind, tool, path: Some(Pattern::path(pattern)), command, action, reason }
    };
    vec![rule("**/.env", Action::Refuse), rule("src/**", Action::Allow)]
}

fn some_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (any::<usize>(), how()).prop_map(|(which, how)| Op::Do(which, how)),
        5 => some_request().prop_map(Op::Request),
        2 => (any::<usize>(), how()).prop_map(|(which, how)| Op::Late(which, how)),
        1 => prop_oneof![4 => 0..20_u64, 1 => 0..1000_u64].prop_map(Op::Pass),
        1 => Just(Op::Crash),
        1 => Just(Op::Wake),
    ]
}

fn some_request() -> impl Strategy<Value = Request> {
    let say = (prop::bool::weighted(0.5), 0..4_usize, any::<bool>(), prop::bool::weighted(0.2));
    let approve = (any::<usize>(), any::<bool>(), prop::option::of(any::<usize>()));
    prop_oneof![
        1 => Just(Request::Create),
        8 => say.prop_map(|(run, model, role, media)| Request::Say { run, model, role, media }),
        4 => (0..3_usize, prop::bool::weighted(0.2), 0..4_usize)
            .prop_map(|(asking, talk, setup)| Request::Queue { asking, talk, setup }),
        2 => any::<usize>().prop_map(Request::CancelTurn),
        1 => any::<bool>().prop_map(|instead| Request::Import { instead }),
        2 => any::<(usize, bool)>().prop_map(|(turn, replaced)| Request::Supersede { turn, replaced }),
        1 => (0..3_u8).prop_map(Request::SetSystemPrompt),
        1 => (0..3_u8).prop_map(Request::SetWorkspace),
        4 => any::<usize>().prop_map(Request::Start),
        3 => approve.prop_map(|(call, allow, turn)| Request::Approve { call, allow, turn }),
        1 => Just(Request::Cancel),
        2 => Just(Request::Compact),
        1 => Just(Request::CompactWith),
        1 => Just(Request::Close),
        1 => (0..2_u8).prop_map(Request::Label),
        1 => any::<usize>().prop_map(Request::Switch),
        1 => any::<usize>().prop_map(Request::Attach),
        1 => (0..100_usize).prop_map(Request::Revert),
        2 => any::<(bool, bool)>().prop_map(|(own, within)| Request::SetTools { own, within }),
        2 => any::<usize>().prop_map(Request::Return),
        2 => any::<usize>().prop_map(Request::Claim),
        2 => (0..3_usize).prop_map(Request::Disconnect),
        2 => any::<usize>().prop_map(Request::Keyed),
        4 => any::<(usize, bool)>().prop_map(|(call, link)| Request::Ask { call, link }),
        3 => any::<(usize, bool)>().prop_map(|(question, fits)| Request::Reply { question, fits }),
    ]
}

fn how() -> impl Strategy<Value = Behavior> {
    let calls = prop::collection::vec((0..TOOLS.len(), 0..ARGUMENTS.len()), 0..4);
    let tokens = prop_oneof![20 => 0..50_u64, 1 => any::<u64>()];
    let text = prop::option::of("[a-zé€]{1,6}");
    (prop::bool::weighted(0.8), text, calls, tokens, any::<usize>()).prop_map(
        |(ok, text, calls, tokens, failure)| Behavior { ok, text, calls, tokens, failure },
    )
}
