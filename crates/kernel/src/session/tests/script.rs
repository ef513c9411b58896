//! The language of scripts: one command per line, with short names for ids.
//!
//! ```text
//! rules ask=exec verify       create [on MODEL]         label k=v | unlabel k | switch MODEL
//! say hi [beside context] [with image:x.png] [on MODEL]   later hi …     attach NAME MIME
//! say hi under [prompt=BRIEF] [tools=OPEN] [folder=/else]     (also for later and queue)
//! queue hi (words that are options: strictly, freely, unattended, quickly, talk)   cancel_turn t1
//! import me hi | model hello     replace me hi | model hello     instruct [be brief]     move /else
//! start t1 | cancel [why] | close | compact | compact_with text | recover | wake      +60 (seconds pass)
//! [s1] text hi | [s1] thought hm | [s1] text@5 hi | [s1] retry why
//! [s1] answer [read/written] c1 look {"p":1} + c2 edit             [s1] fails stream_cut | context_overflow | …
//! assess c1 [path=a] [command=a_b] [opaque] [similar=x] [permit=x] [critical]       review c1 approve|reject|none [why]
//! allow c1 [t1] [: why] | deny c1 [t1] [: why] | allow_same c1 | allow_similar c1 | deny_similar c1
//! ask c1 [FIELD] (which needs a value) | ask_link c1 | reply q1 {"p":1} | decline q1 | withdraw q1
//! done c1 [text] | failed c1 [text] | stopped c1 | changed c1 PATH:BEFORE~AFTER …
//! survey TITLE=text …     revert t1 | reapply t1 | reverted t1 | revert_failed t1 why
//! summary m2 text | unsummarized why      saved m2 PATH | not_saved m2 why      (`/` ends a line of text)
//! tools NAME[:RISK] … [of=LOOK,EDIT] [within=SECONDS] [longer=TOOL]     say hi [worded <q>hi</q>] as KEY
//! claim CLIENT/1 c1 c2     claim_new CLIENT/1 c1 (a client that did not come back)     (NAME@FRONT_END)
//! return c1 [text] [by CLIENT/1]     disconnect CLIENT/1     (NAME! may be repeated)
//! ```

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::approval_id::ApprovalId;
use crate::change::{FileChange, FileKind, FileVersion};
use crate::client::ClientRef;
use crate::codec;
use crate::command::{Approve, Command, ImportedMessage, NewAttachment, NewMessage, TurnStart};
use crate::context::Section;
use crate::event::{
    ApprovalDecision, ApprovalMode, DecidedBy, NewSession, Record, RememberScope, Setup, ToolUse,
    TurnOptions,
};
use crate::id::{BlobId, CallId, GeneratedId, MessageId, SessionId, StepId};
use crate::message::{MediaKind, Part, Role};
use crate::model::{
    self, Channel, Failure, FailureKind, FinishReason, ModelRef, Profile, RawToolCall, Usage,
};
use crate::policy::Rules;
use crate::question::{Question, QuestionForm};
use crate::session::{Refusal, State, handle};
use crate::stamp::Stamp;
use crate::time::Time;
use crate::tool::{Assessment, CallSubject, Ending, Outcome, Risk};
use crate::toolset::{CallTimeout, ClientTool, Toolset};

use super::rules;

pub(super) const MIDNIGHT: Time = Time::from_micros(1_735_689_600_000_000);

/// A session to which scripts are applied.
pub(crate) struct Session {
    pub(crate) state: State,
    rules: Rules,
    /// The profiles of each provider's models.
    pub(crate) profiles: HashMap<String, Profile>,
    records: Vec<Arc<Record>>,
    pub(super) log: Vec<String>,
    /// Short names by full id.
    pub(super) names: HashMap<String, String>,
    now: Time,
    commands: u64,
}

impl Default for Session {
    fn default() -> Self {
        let rules = rules::rules();
        Self {
            state: State::new(SessionId::named("sess".into()), Arc::new(rules.clone())),
            rules,
            profiles: rules::profiles(),
            records: Vec::new(),
            log: Vec::new(),
            names: HashMap::new(),
            now: MIDNIGHT,
            commands: 0,
        }
    }
}

impl Session {
    /// A session after a script that must be accepted.
    pub(crate) fn after(script: &str) -> Self {
        let mut session = Self::default();
        for line in super::lines(script) {
            if let Err(refusal) = session.play(line) {
                panic!("{line:?}: {refusal}");
            }
        }
        session
    }

    /// Executes one line.
    pub(crate) fn play(&mut self, line: &str) -> Result<(), Refusal> {
        let (word, rest) = split(line);
        if word == "rules" {
            rest.split(' ').for_each(|word| rules::change(&mut self.rules, word));
            self.state.rules = Arc::new(self.rules.clone());
            return Ok(());
        }
        if let Some(seconds) = word.strip_prefix('+') {
            self.now = self.now.after(Duration::from_secs(seconds.parse().unwrap()));
            return Ok(());
        }
        let command = self.command(line);
        self.send(command)
    }

    /// Executes a command.
    pub(super) fn send(&mut self, command: Command) -> Result<(), Refusal> {
        self.commands += 1;
        let stamp = Stamp::new(self.now, [self.commands, 7]);
        self.set_profiles(&command);
        let before = self.state.clone();
        let records = handle(&mut self.state, command, &stamp).inspect_err(|_| {
            assert_eq!(before, self.state, "a refusal changes nothing");
        })?;
        for record in &records {
            let line = self.event(&record.event);
            self.log.push(line);
        }
        self.records.extend(records);
        Ok(())
    }

    pub(super) fn change_rules(&mut self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.rules);
        self.state.rules = Arc::new(self.rules.clone());
    }

    /// Passes the model profiles to the state, as the runtime does.
    pub(crate) fn set_profiles(&mut self, command: &Command) {
        let known = |model: ModelRef| {
            let profile = self.profiles.get(&model.provider)?.clone();
            Some((model, profile))
        };
        let profiles = self.state.models_for(command).into_iter().filter_map(known).collect();
        self.state.set_profiles(profiles);
    }

    /// Makes a provider's models unavailable.
    pub(super) fn forget_provider(&mut self, name: &str) {
        self.profiles.remove(name);
    }

    /// Checks that replaying the events gives the same state.
    pub(super) fn check_replay(&self) {
        let mut again = State::new(self.state.id.clone(), Arc::clone(&self.state.rules));
        for record in &self.records {
            let event = codec::decode(codec::VERSION, &codec::encode(&record.event)).unwrap();
            again.replay([&Record { event, ..**record }]);
        }
        assert_eq!(again, self.state);
    }

    fn command(&self, line: &str) -> Command {
        let (word, rest) = split(line);
        let text = || Some(rest.to_owned()).filter(|text| !text.is_empty());
        match word {
            "create" => Command::Create(NewSession {
                workspace: "/work".into(),
                system_prompt: rest.strip_prefix("as ").map(Into::into),
                model: rest.strip_prefix("on ").and_then(ModelRef::parse),
                ..NewSession::default()
            }),
            "label" => {
                let (key, value) = rest.split_once('=').unwrap();
                Command::SetLabel { key: key.into(), value: Some(value.into()) }
            }
            "unlabel" => Command::SetLabel { key: rest.into(), value: None },
            "switch" => Command::SwitchModel(ModelRef::parse(rest).unwrap()),
            "attach" => {
                let (name, mime) = rest.rsplit_once(' ').unwrap();
                let (name, mime) = (name.replace("NUL", "\0"), mime.into());
                Command::Attach(NewAttachment {
                    name,
                    mime,
                    blob: BlobId::named("b10b".into()),
                    size: 3,
                })
            }
            "say" => Command::AddMessage(Box::new(say(rest, Role::User, TurnStart::Now))),
            "later" => Command::AddMessage(Box::new(say(rest, Role::User, TurnStart::Later))),
            "queue" => Command::AddMessage(Box::new(say(rest, Role::User, TurnStart::Queued))),
            "cancel_turn" => Command::CancelTurn { turn: self.real(rest), reason: None },
            "import" => Command::ImportMessages { messages: imported(rest), instead: false },
            "supersede" => Command::Supersede { from: self.real(rest) },
            "instead" => {
                let (turn, rest) = rest.split_once(' ').unwrap();
                let supersedes = Some(self.real(turn));
                Command::AddMessage(Box::new(NewMessage {
                    supersedes,
                    ..say(rest, Role::User, TurnStart::Queued)
                }))
            }
            "replace" => Command::ImportMessages { messages: imported(rest), instead: true },
            "instruct" => {
                Command::SetSystemPrompt { system_prompt: (!rest.is_empty()).then(|| rest.into()) }
            }
            "move" => Command::SetWorkspace { workspace: rest.into() },
            "system" => Command::AddMessage(Box::new(say(rest, Role::System, TurnStart::Later))),
            "start" => Command::StartTurn { turn: self.real(rest) },
            "allow" => Command::Approve(self.approve(rest, ApprovalDecision::Allow)),
            "deny" => Command::Approve(self.approve(rest, ApprovalDecision::Deny)),
            "allow_same" => self.remember(rest, ApprovalDecision::Allow, RememberScope::Same),
            "allow_similar" => self.remember(rest, ApprovalDecision::Allow, RememberScope::Similar),
            "deny_similar" => self.remember(rest, ApprovalDecision::Deny, RememberScope::Similar),
            "reply" => {
                let (id, content) = split(rest);
                let content = serde_json::from_str(content).unwrap();
                Command::Approve(Approve { content, ..self.approve(id, ApprovalDecision::Allow) })
            }
            "revert" => Command::Revert { turn: self.real(rest) },
            "reapply" => Command::Reapply { turn: self.real(rest) },
            "tools" => Command::SetTools(toolset(rest)),
            "return" => {
                let (rest, by) = rest.split_once(" by ").unwrap_or((rest, "client/1"));
                let (id, text) = split(rest);
                let outcome = Outcome::success(text);
                Command::ReturnResult { call: self.real(id), by: client(by), outcome }
            }
            "claim" | "claim_new" => {
                let (by, calls) = split(rest);
                let calls = calls.split_whitespace().map(|id| self.real(id)).collect();
                Command::ClaimCalls { calls, by: client(by), came_back: word == "claim" }
            }
            "disconnect" => Command::Disconnect { client: client(rest) },
            "cancel" => Command::Cancel { reason: text() },
            "compact" => Command::Compact,
            "compact_with" => Command::CompactWith { summary: rest.into() },
            "close" => Command::Close { reason: text() },
            "recover" => Command::Recover { interrupted: Vec::new() },
            "wake" => Command::Wake,
            _ => self.report(line),
        }
    }

    /// Reports of the runtime.
    fn report(&self, line: &str) -> Command {
        let (word, rest) = split(line);
        let (id, text) = split(rest);
        let call = || self.real::<CallId>(id);
        match word {
            "assess" => Command::Assessed { call: call(), assessment: assessment(text).into() },
            "review" => {
                let (answer, comment) = split(text);
                let answer = match answer {
                    "approve" => Some(ApprovalDecision::Allow),
                    "reject" => Some(ApprovalDecision::Deny),
                    _ => None,
                };
                let usage = Usage { input: 5, output: 1, ..Usage::default() };
                Command::Reviewed { call: call(), answer, comment: comment.into(), usage }
            }
            "ask" => {
                let required: Vec<&str> = text.split_whitespace().collect();
                let fields = required.iter().map(|name| (*name, json!({ "type": "string" })));
                let properties: serde_json::Map<_, _> =
                    fields.map(|(name, schema)| (name.to_owned(), schema)).collect();
                let schema = json!({ "properties": properties, "required": required });
                ask(call(), QuestionForm::Schema(schema))
            }
            "ask_link" => ask(call(), QuestionForm::Url("https://a.example".into())),
            "withdraw" => Command::WithdrawQuestion { question: self.real(id) },
            "survey" => {
                let turn = self.state.open.as_ref().expect("a turn is open").id.clone();
                Command::ContextGathered { turn, sections: sections(rest) }
            }
            "reverted" => Command::RevertFinished { turn: self.real(id), result: Ok(()) },
            "revert_failed" => {
                Command::RevertFinished { turn: self.real(id), result: Err(text.into()) }
            }
            "changed" => {
                let mut outcome = Outcome::success("changed");
                outcome.changes = changes(text);
                Command::CallFinished { call: call(), outcome }
            }
            "done" => Command::CallFinished { call: call(), outcome: Outcome::success(text) },
            "failed" => Command::CallFinished { call: call(), outcome: Outcome::failure(text) },
            "stopped" => {
                let outcome = Outcome::ended(Ending::Cancelled, "killed");
                Command::CallFinished { call: call(), outcome }
            }
            "summary" => {
                let (upto, usage) = (self.real::<MessageId>(id), Usage::default());
                Command::SummaryWritten { upto, summary: text.replace('/', "\n"), usage }
            }
            "saved" => Command::MemorySaved { upto: self.real(id), result: Ok(text.into()) },
            "not_saved" => Command::MemorySaved { upto: self.real(id), result: Err(text.into()) },
            "unsummarized" => Command::SummaryFailed { reason: rest.into() },
            _ if word.starts_with('s') && word[1..].parse::<u32>().is_ok() => {
                self.of_step(self.real(word), rest)
            }
            _ => {
                let open = self.state.open.as_ref().and_then(|open| open.step());
                let Some(step) = open else { panic!("no step is open for {line:?}") };
                self.of_step(step.id.clone(), line)
            }
        }
    }

    fn of_step(&self, step: StepId, line: &str) -> Command {
        let (word, rest) = split(line);
        let (word, offset) = match word.split_once('@') {
            Some((word, offset)) => (word, offset.parse().unwrap()),
            None => (word, self.written()),
        };
        let output = |channel| {
            let text = rest.into();
            Command::ModelOutput { step: step.clone(), offset, channel, text, pieces: Vec::new() }
        };
        match word {
            "text" => output(Channel::Text),
            "thought" => output(Channel::Thought),
            "answer" => Command::ModelCompleted { step, answer: answer(rest) },
            "retry" => {
                Command::ModelRetrying { step, attempt: 2, wait_ms: 50, reason: rest.into() }
            }
            "fails" => {
                let kind = failure(rest);
                let failure = Failure { kind, message: format!("{} happened", kind.name()) };
                Command::ModelFailed { step, failure }
            }
            _ => panic!("no such word: {word}"),
        }
    }

    fn written(&self) -> u64 {
        let step = self.state.open.as_ref().and_then(|open| open.step());
        step.map_or(0, |step| step.written)
    }

    fn approve(&self, rest: &str, answer: ApprovalDecision) -> Approve {
        let (ids, reason) = match rest.split_once(':') {
            Some((ids, reason)) => (ids.trim(), Some(reason.trim().to_owned())),
            None => (rest, None),
        };
        let (call, turn) = split(ids);
        let turn = Some(turn).filter(|turn| !turn.is_empty()).map(|turn| self.real(turn));
        let (by, remember) = (DecidedBy::Client, RememberScope::Once);
        let (question, content) = (self.question(call), None);
        Approve { question, turn, answer, reason, by, remember, content }
    }

    fn question(&self, short: &str) -> ApprovalId {
        let known = self.names.iter().find(|(_, name)| *name == short);
        ApprovalId::from(known.map_or(short, |(id, _)| id).to_owned())
    }

    fn remember(&self, rest: &str, answer: ApprovalDecision, remember: RememberScope) -> Command {
        Command::Approve(Approve { remember, ..self.approve(rest, answer) })
    }

    /// The full id of a short name; other names are used unchanged.
    fn real<I: GeneratedId>(&self, short: &str) -> I {
        let known = self.names.iter().find(|(_, name)| *name == short);
        I::named(known.map_or(short, |(id, _)| id).to_owned())
    }
}

fn ask(call: CallId, form: QuestionForm) -> Command {
    let (asker, message) = ("db".into(), "Which?".into());
    Command::AskUser { call, question: Box::new(Question { asker, message, form }) }
}

fn imported(lines: &str) -> Vec<ImportedMessage> {
    let message = |(role, text): (&str, &str)| {
        let role = if role == "model" { Role::Assistant } else { Role::User };
        ImportedMessage::text(role, text.into())
    };
    lines.split(" | ").map(|line| message(split(line))).collect()
}

fn toolset(words: &str) -> Toolset {
    let mut toolset = Toolset::default();
    for word in words.split_whitespace() {
        match word.split_once('=') {
            Some(("of", names)) => {
                let names = names.split(',').filter(|name| !name.is_empty());
                toolset.daemon = Some(names.map(Into::into).collect());
            }
            Some(("longer", tool)) => toolset.spans.push(CallTimeout {
                tool: tool.into(),
                seconds: [("for".to_owned(), 60), ("wait".to_owned(), 0)].into(),
                spare: 15,
                unless: Some("detached".into()),
                at_most: 900,
            }),
            Some((_, seconds)) => toolset.timeout_ms = Some(seconds.parse::<u64>().unwrap() * 1000),
            None => toolset.client.push(client_tool(word)),
        }
    }
    toolset
}

/// A client on one connection, or on any.
fn client(word: &str) -> ClientRef {
    match word.rsplit_once('/') {
        Some((name, connection)) => ClientRef::connected(name, connection),
        None => ClientRef::named(word),
    }
}

fn client_tool(word: &str) -> ClientTool {
    let (word, front_end) =
        word.split_once('@').map_or((word, None), |(word, of)| (word, Some(of)));
    let (word, repeatable) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
    let (name, risk) = word.split_once(':').unwrap_or((word, "medium"));
    let risks = [Risk::Low, Risk::Medium, Risk::High, Risk::Critical];
    let risk = risks.into_iter().find(|known| known.name() == risk).unwrap();
    let (description, schema) = ("at the client".into(), json!({ "type": "object" }));
    let front_end = front_end.map(Into::into);
    ClientTool {
        name: name.into(),
        description,
        schema,
        risk,
        repeatable,
        front_end,
        strict: false,
    }
}

fn say(rest: &str, role: Role, run: TurnStart) -> NewMessage {
    let (rest, setup) = match rest.split_once(" under ") {
        Some((rest, words)) => (rest, setup(words)),
        None => (rest, Setup::default()),
    };
    let (rest, key) = match rest.split_once(" as ") {
        Some((rest, key)) => (rest, Some(key.to_owned())),
        None => (rest, None),
    };
    let (rest, wording) = match rest.split_once(" worded ") {
        Some((rest, wording)) => (rest, Some(wording.to_owned())),
        None => (rest, None),
    };
    let (rest, model) = match rest.split_once(" on ") {
        Some((rest, model)) => (rest, ModelRef::parse(model)),
        None => (rest, None),
    };
    let (text, media) = match rest.split_once(" with ") {
        Some((text, media)) => (text, media.split_once(':')),
        None => (rest, None),
    };
    let (text, beside) = match text.split_once(" beside ") {
        Some((text, beside)) => (text, Some(Part::Context(beside.into()))),
        None => (text, None),
    };
    let mut parts: Vec<Part> = beside.into_iter().chain([Part::Text(text.into())]).collect();
    parts.extend(media.map(|(kind, name)| {
        let kinds = [MediaKind::Image, MediaKind::Audio, MediaKind::File];
        let kind = kinds.into_iter().find(|known| known.name() == kind).unwrap();
        Part::Media { kind, name: name.into(), mime: None }
    }));
    parts.retain(|part| *part != Part::Text(String::new()));
    let options = TurnOptions { key, wording, ..options(rest, model) };
    NewMessage { setup, ..NewMessage::new(role, parts, run, options) }
}

/// The setup of a message: `prompt=TEXT tools=NAME folder=PATH`.
fn setup(words: &str) -> Setup {
    let mut setup = Setup::default();
    for (word, value) in words.split_whitespace().filter_map(|word| word.split_once('=')) {
        match word {
            "prompt" => setup.system_prompt = Some(value.into()),
            "tools" => setup.toolset = Some(toolset(value)),
            _ => setup.workspace = Some(value.into()),
        }
    }
    setup
}

/// Some words of a message are also options.
fn options(words: &str, model: Option<ModelRef>) -> TurnOptions {
    let says = |word: &str| words.split(' ').any(|message| message == word);
    let asking = match (says("strictly"), says("freely")) {
        (true, _) => ApprovalMode::Strict,
        (false, true) => ApprovalMode::Waived,
        (false, false) if says("unattended") => ApprovalMode::Unattended,
        (false, false) => ApprovalMode::Policy,
    };
    let tools = if says("talk") { ToolUse::Withheld } else { ToolUse::Offered };
    let answer_within_ms = says("quickly").then_some(5000);
    TurnOptions { model, asking, tools, answer_within_ms, ..TurnOptions::default() }
}

fn answer(rest: &str) -> model::ModelResponse {
    let (usage, calls) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((usage, calls)) => (usage.split_once('/').unwrap(), calls.trim()),
        None => (("10", "1"), rest),
    };
    let (input, output) = (usage.0.parse().unwrap(), usage.1.parse().unwrap());
    let calls: Vec<RawToolCall> = calls
        .split(" + ")
        .filter(|call| !call.is_empty())
        .map(|call| {
            let (id, rest) = split(call);
            let (tool, arguments) = split(rest);
            let id = if id == "_" { "" } else { id };
            RawToolCall { id: id.into(), tool: tool.into(), arguments: arguments.into() }
        })
        .collect();
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    model::ModelResponse::new(finish, calls, Usage { input, output, ..Usage::default() })
}

fn failure(word: &str) -> FailureKind {
    use FailureKind::*;
    let kinds = [
        RateLimited,
        Unavailable,
        Unauthorized,
        UnknownModel,
        ContextOverflow,
        Rejected,
        Cut,
        Stalled,
        Malformed,
        UnsupportedInput,
        Refused,
    ];
    kinds.into_iter().find(|kind| kind.name() == word).unwrap()
}

pub(super) fn assessment(subject: &str) -> Assessment {
    let (mut about, mut risk) = (CallSubject::default(), Risk::High);
    for word in subject.split_whitespace() {
        let (word, value) = word.split_once('=').unwrap_or((word, ""));
        let value = value.replace('_', " ");
        match word {
            "path" => about.paths.push(value),
            "command" => about.commands.push(value),
            "similar" => about.similar = Some(value),
            "opaque" => about.opaque = true,
            "permit" => about.permissions.push(value),
            _ => risk = Risk::Critical,
        }
    }
    Assessment {
        risk,
        reasons: vec!["it bites".into()],
        reversible: false,
        preview: "rm -r".into(),
        subject: about,
        settled: None,
    }
}

fn sections(words: &str) -> Vec<Section> {
    let section = |word: &str| {
        let (title, text) = word.split_once('=').expect("TITLE=text");
        Section { title: title.into(), text: text.into() }
    };
    words.split_whitespace().map(section).collect()
}

fn changes(words: &str) -> Vec<FileChange> {
    let version = |name: &str| {
        BlobId::parse(name).map(|blob| FileVersion {
            blob: Some(blob),
            size: 1,
            mode: None,
            shape: FileKind::File,
        })
    };
    let change = |word: &str| {
        let (path, versions) = word.split_once(':').expect("path:before>after");
        let (before, after) = versions.split_once('~').expect("before~after");
        FileChange { path: path.into(), before: version(before), after: version(after) }
    };
    words.split_whitespace().map(change).collect()
}

fn split(line: &str) -> (&str, &str) {
    line.split_once(' ').unwrap_or((line, ""))
}
