//! What a session is: the fold of its journal, and the rules it lives under.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval_id::ApprovalId;
use crate::context::Context;
use crate::dynamic_tools::DynamicTools;
use crate::event::{ApprovalDecision, Record, Seq};
use crate::id::{CallId, MessageId, SessionId, TurnId};
use crate::memory::{MemoryEntry, MemoryFile};
use crate::message::{Attachment, Message, Part, Role};
use crate::model::{ModelRef, Profile, Usage};
use crate::policy::{Rules, Verdict};
use crate::session::evolve::evolve;
use crate::session::subagents::SubagentList;
use crate::session::turn::{OpenTurn, Turn};
use crate::session::turns::TurnList;
use crate::session_summary::{Fork, SessionSummary, Status};
use crate::time::Time;
use crate::tool::{Assessment, CallSubject, Risk, ToolSpec};
use crate::toolset::{ClientTool, Toolset};

/// How many characters a title has at most.
const TITLE_CHARS: usize = 50;

/// A session: everything its journal says, and the rules that new decisions follow.
///
/// Two are equal if their journals say the same.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) data: SessionData,
    pub(crate) rules: Arc<Rules>,
    /// What the models can do that the next decision may have to know.
    pub(super) profiles: HashMap<ModelRef, Profile>,
    /// Tools that come and go, as they are now.
    dynamic: Arc<DynamicTools>,
}

/// Everything that a session's journal says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionData {
    /// The session.
    pub id: SessionId,
    /// The last event in it.
    pub head: Seq,
    /// When it began; nothing if it has not.
    pub created: Option<Time>,
    /// Where it branched off, if it did.
    pub forked: Option<Fork>,
    /// When something last happened.
    pub updated: Time,
    /// Where it stands.
    pub status: Status,
    /// Where its tools work.
    pub workspace: PathBuf,
    /// Standing instructions of the client.
    pub system_prompt: Option<String>,
    /// Front ends' own notes.
    pub labels: BTreeMap<String, String>,
    /// The model, where a client chose one.
    pub model: Option<ModelRef>,
    /// Which tools models are offered.
    pub toolset: Toolset,
    /// Files that were handed over.
    pub attachments: Vec<Attachment>,
    /// What was said, in order.
    pub messages: Vec<Arc<Message>>,
    /// How many of these, from the first on, models do not read any more.
    pub forgotten: usize,
    /// The turns, oldest first.
    pub turns: TurnList,
    /// The turn under way.
    pub open: Option<OpenTurn>,
    /// Tokens of all turns.
    pub usage: Usage,
    /// What models read instead of old history.
    pub compaction: Compaction,
    /// What summaries named as worth keeping and is not in memory yet.
    pub saving: Vec<PendingMemory>,
    /// Sessions that work, or worked, for calls of this one.
    pub subagents: SubagentList,
    /// Questions of those sessions, and of theirs, that wait for a person's word.
    pub asked: Vec<SubagentApproval>,
    /// What models are told of the workspace.
    pub context: Context,
    /// The turn whose changes are being undone.
    pub reverting: Option<TurnId>,
    /// Answers that count for more than one call.
    pub remembered: Vec<RememberedDecision>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// How many of the messages are of people and models.
    pub(super) spoken: u64,
    pub(super) calls: HashSet<CallId>,
    /// The tools that clients run, as models are offered them.
    pub(super) delegated: Vec<Arc<ToolSpec>>,
    /// The beginning of the first line that a person said, once one said something.
    pub(super) title: Option<String>,
    /// Where standing instructions are among the messages.
    pub(crate) instructions: Vec<usize>,
    /// The first turn of which models may read something.
    pub(crate) first_read: usize,
    /// How many sessions are above it, each of which works for the next.
    pub(super) depth: u32,
    /// Where attachments are, by name.
    attachment_at: HashMap<String, usize>,
}

/// How much history there is and what stands for the old part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// Tokens that the last model call read.
    pub tokens: u64,
    /// A summary is being written for everything up to this message.
    pub pending: Option<MessageId>,
    /// The newest summary.
    pub summary: Option<HistorySummary>,
    /// The newest one that ends in a turn before that: what is read if that turn is tried again.
    pub(super) earlier: Option<HistorySummary>,
    /// How many messages there were when `tokens` were counted; unknown once the prompt is another.
    pub(super) counted: Option<usize>,
    /// Results of messages before this one are shortened in prompts.
    pub(crate) shortened: usize,
    /// Tokens there were, or were left, at the last summary: another is made only when there are
    /// clearly more.
    pub(super) floor: u64,
    /// Whether the last summary could not be written.
    pub(super) failed: bool,
    /// Whether the provider said that the last prompt was too long.
    pub(super) overflow: bool,
    /// The most tokens that the model is taken to read at once, where it turned out to read less than
    /// it was said to.
    pub(super) window: Option<u64>,
}

impl Compaction {
    /// The summaries that may stand for old history, the best first.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = &HistorySummary> {
        self.summary.iter().chain(&self.earlier)
    }
}

/// What a summary named as worth keeping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingMemory {
    /// The last message of the summary.
    pub upto: MessageId,
    /// When it was written.
    pub at: Time,
    /// What it named.
    pub facts: Vec<String>,
}

impl PendingMemory {
    /// As it is written to memory, to the notes of the day on which it was said. A crash may have it
    /// asked for again.
    pub fn entry(&self) -> MemoryEntry {
        let lines: Vec<_> = self.facts.iter().map(|fact| format!("- {fact}")).collect();
        MemoryEntry { once: Some(self.at), ..MemoryEntry::new(MemoryFile::Daily, lines.join("\n")) }
    }
}

/// An answer that counts for more than one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedDecision {
    /// The tool.
    pub tool: String,
    /// Which of its calls.
    pub calls: CallMatcher,
    /// The answer.
    pub answer: ApprovalDecision,
}

/// Which calls of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallMatcher {
    /// Calls with these arguments.
    Same(Value),
    /// Calls that have this in common.
    Similar(String),
}

/// A question of another session that waits for a person's word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubagentApproval {
    /// The call of this session for which the other one works, perhaps at several removes.
    pub via: CallId,
    /// The session that asks.
    pub session: SessionId,
    /// What it asks.
    pub question: ApprovalId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// What a person is shown.
    pub assessment: Box<Assessment>,
    /// When it counts as "no".
    pub expires: Option<Time>,
}

/// What stands for old history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistorySummary {
    /// The last message it stands for.
    pub upto: MessageId,
    /// The text.
    pub text: String,
    /// Where that message is among all of the session.
    pub(crate) at: usize,
}

impl SessionData {
    fn new(id: SessionId) -> Self {
        Self {
            id,
            head: 0,
            created: None,
            forked: None,
            updated: Time::default(),
            status: Status::Active,
            workspace: PathBuf::new(),
            system_prompt: None,
            labels: BTreeMap::new(),
            model: None,
            toolset: Toolset::default(),
            attachments: Vec::new(),
            messages: Vec::new(),
            forgotten: 0,
            turns: TurnList::default(),
            open: None,
            usage: Usage::default(),
            compaction: Compaction::default(),
            saving: Vec::new(),
            subagents: SubagentList::default(),
            asked: Vec::new(),
            context: Context::default(),
            reverting: None,
            remembered: Vec::new(),
            error: None,
            spoken: 0,
            calls: HashSet::new(),
            delegated: Vec::new(),
            title: None,
            instructions: Vec::new(),
            first_read: 0,
            depth: 0,
            attachment_at: HashMap::new(),
        }
    }

    /// The turn of that id.
    pub fn turn(&self, id: &TurnId) -> Option<&Turn> {
        self.turns.find(id)
    }

    /// The turn whose message has that name.
    pub fn turn_by_key(&self, key: &str) -> Option<&Turn> {
        self.turns.turn_by_key(key)
    }

    /// The attachment of that name.
    pub fn attachment(&self, name: &str) -> Option<&Attachment> {
        self.attachment_at.get(name).map(|n| &self.attachments[*n])
    }

    /// Where a message is; looked for from the end, because what is asked for is mostly recent.
    pub(crate) fn position(&self, id: &MessageId) -> Option<usize> {
        self.messages.iter().rposition(|message| {
            #[cfg(test)]
            crate::session::tests::scale::visited();
            message.id == *id
        })
    }

    /// Whether something is under way.
    pub fn busy(&self) -> bool {
        self.open.is_some() || self.compaction.pending.is_some() || self.reverting.is_some()
    }

    /// Whether there is something to do for it, now or after a crash.
    fn has_work(&self) -> bool {
        self.busy() || !self.saving.is_empty() || self.subagents.orphans().next().is_some()
    }

    /// The session that asks a question, if it is not this one but one that works for it.
    pub fn approval_session(&self, question: &ApprovalId) -> Option<&SessionId> {
        let own = self.open.as_ref().is_some_and(|open| open.asks(question));
        let asked = self.asked.iter().find(|asked| asked.question == *question && !own);
        asked.map(|asked| &asked.session)
    }

    pub(super) fn add_attachment(&mut self, file: Attachment) {
        self.attachment_at.entry(file.name.clone()).or_insert(self.attachments.len());
        self.attachments.push(file);
    }

    /// Takes a message of a turn; the first of a person gives the session its title.
    pub(super) fn add_message(&mut self, message: Message) {
        let at = self.messages.len();
        self.spoken += u64::from(message.role.is_conversation());
        if self.title.is_none() && message.role == Role::User {
            self.title = Some(first_line(&message));
        }
        if message.role == Role::System {
            self.instructions.push(at);
        } else if let Some(n) = self.turns.position(&message.turn).filter(|_| !message.interrupted)
        {
            self.turns.change(&message.turn, |turn| {
                if !turn.superseded {
                    turn.read.push(at);
                }
            });
            self.first_read = self.first_read.min(n);
        }
        self.messages.push(Arc::new(message));
    }

    /// The beginning of the newest message of a speaker that has text.
    fn newest(&self, role: Role) -> String {
        let of_role = self.current_messages().rev().filter(|message| message.role == role);
        of_role.map(|message| first_line(message)).find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// What was said, in order, without the turns that were replaced.
    pub fn current_messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        let replaced = |turn: &TurnId| self.turns.find(turn).is_some_and(|turn| turn.superseded);
        self.messages.iter().filter(move |message| !replaced(&message.turn))
    }

    /// The session at a glance.
    pub fn summary(&self) -> SessionSummary {
        SessionSummary {
            id: self.id.clone(),
            created: self.created.unwrap_or(self.updated),
            forked: self.forked.clone(),
            model: self.model.clone(),
            head: self.head,
            updated: self.updated,
            status: self.status,
            workspace: self.workspace.clone(),
            labels: self.labels.clone(),
            title: self.title.clone().unwrap_or_default(),
            last_prompt: self.newest(Role::User),
            last_answer: self.newest(Role::Assistant),
            messages: self.spoken,
            tokens: self.usage.total(),
            usage: self.usage,
            context: self.compaction.tokens,
            last_turn: self.turns.last().map(|turn| turn.id.clone()),
            error: self.error.clone(),
            open: self.has_work(),
        }
    }
}

impl State {
    /// A session before its first event.
    pub fn new(id: SessionId, rules: Arc<Rules>) -> Self {
        Self {
            data: SessionData::new(id),
            rules,
            profiles: HashMap::new(),
            dynamic: Arc::default(),
        }
    }

    /// A session as a snapshot has it.
    pub(crate) fn restored(data: SessionData, id: SessionId, rules: Arc<Rules>) -> Self {
        let data = SessionData { id, ..data };
        Self { data, rules, profiles: HashMap::new(), dynamic: Arc::default() }
    }

    /// Everything that its journal says.
    pub(crate) fn data(&self) -> &SessionData {
        &self.data
    }

    /// Takes the events of a journal, in order.
    pub fn replay<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) {
        for record in records {
            evolve(self, record);
        }
    }

    /// The rules it lives under.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The model that the open turn, or the next one, asks.
    pub fn current_model(&self) -> &ModelRef {
        let of_turn = self.open.as_ref().and_then(|turn| turn.options.model.as_ref());
        of_turn.or(self.model.as_ref()).unwrap_or(&self.rules.default_model)
    }

    /// The tool of that name, if it is offered.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        let delegated = self.delegated.iter().find(|tool| tool.name == name);
        let known = || self.rules.tool(name).or_else(|| self.dynamic.tool(name));
        let daemons = || known().filter(|_| self.toolset.includes(name));
        delegated.or_else(daemons)
    }

    /// Takes the tools that come and go, as they are now.
    pub fn set_dynamic_tools(&mut self, tools: Arc<DynamicTools>) {
        self.dynamic = tools;
    }

    /// Takes the tools that come and go as a newer state of the session has them.
    pub fn copy_dynamic_tools(&mut self, newest: &Self) {
        self.dynamic = Arc::clone(&newest.dynamic);
    }

    /// The names of all tools that the daemon runs for this session, listed or not.
    pub(super) fn daemon_tool_names(&self) -> impl Iterator<Item = &str> {
        let tools = self.rules.tools.iter().chain(self.dynamic.all());
        tools.map(|tool| tool.name.as_str()).filter(|name| self.toolset.includes(name))
    }

    /// All tools that models are offered. A client's goes before one of the daemon with its name.
    pub fn tools(&self) -> Vec<Arc<ToolSpec>> {
        let shadowed = |name: &str| self.delegated.iter().any(|tool| tool.name == name);
        let offered =
            |tool: &&Arc<ToolSpec>| self.toolset.includes(&tool.name) && !shadowed(&tool.name);
        let daemons = self.rules.tools.iter().chain(&self.dynamic.listed).filter(offered);
        daemons.chain(&self.delegated).cloned().collect()
    }

    /// What policy says of a call, of which `subject` is known once it was looked at.
    pub(crate) fn verdict(&self, tool: &ToolSpec, subject: Option<&CallSubject>) -> Verdict {
        match self.toolset.client_tool(&tool.name) {
            Some(ClientTool { name, risk: Risk::Critical, .. }) => {
                Verdict::Refuse(format!("{name} is forbidden"))
            }
            _ => self.rules.verdict(tool, subject),
        }
    }
}

impl Deref for State {
    type Target = SessionData;

    fn deref(&self) -> &SessionData {
        &self.data
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

/// The first line of a message, shortened.
fn first_line(message: &Message) -> String {
    let line = message.parts.iter().find_map(line_of).unwrap_or_default();
    line.chars().take(TITLE_CHARS).collect()
}

fn line_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => text.trim().lines().next(),
        Part::Context(_) | Part::Thought(_) | Part::Media { .. } | Part::Call { .. } => None,
    }
}
