//! The state of a session: computed from its journal, plus the rules for new decisions.

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

/// Maximum length of a title, in characters.
const TITLE_CHARS: usize = 50;

/// A session: the data from its journal, and the rules that new decisions follow.
///
/// Two states are equal if their journal data are equal.
#[derive(Clone, Debug)]
pub struct State {
    pub(crate) data: SessionData,
    pub(crate) rules: Arc<Rules>,
    /// Profiles of the models that the next decision may need.
    pub(super) profiles: HashMap<ModelRef, Profile>,
    /// The current dynamic tools.
    dynamic: Arc<DynamicTools>,
}

/// Everything that follows from a session's journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionData {
    /// The session.
    pub id: SessionId,
    /// The number of the last event.
    pub head: Seq,
    /// When the session was created; `None` before that.
    pub created: Option<Time>,
    /// The point at which the session was forked, if it is a fork.
    pub forked: Option<Fork>,
    /// When the last event happened.
    pub updated: Time,
    /// The current status.
    pub status: Status,
    /// The folder in which tools work.
    pub workspace: PathBuf,
    /// The client's system prompt.
    pub system_prompt: Option<String>,
    /// Labels set by front ends.
    pub labels: BTreeMap<String, String>,
    /// The model, if a client chose one.
    pub model: Option<ModelRef>,
    /// The tools that models are offered.
    pub toolset: Toolset,
    /// Files that were added.
    pub attachments: Vec<Attachment>,
    /// The messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// Number of messages, from the first on, that models no longer read.
    pub forgotten: usize,
    /// The turns, oldest first.
    pub turns: TurnList,
    /// The open turn.
    pub open: Option<OpenTurn>,
    /// Tokens of all turns.
    pub usage: Usage,
    /// The summary that models read instead of old history.
    pub compaction: Compaction,
    /// Facts of summaries that are not in memory yet.
    pub saving: Vec<PendingMemory>,
    /// Subagents of this session's calls.
    pub subagents: SubagentList,
    /// Open approval requests of subagents, at any depth.
    pub asked: Vec<SubagentApproval>,
    /// The workspace description that models read.
    pub context: Context,
    /// The turn whose changes are being reverted or reapplied.
    pub reverting: Option<TurnId>,
    /// Approval decisions that apply to more than one call.
    pub remembered: Vec<RememberedDecision>,
    /// Why the last turn failed.
    pub error: Option<String>,
    /// Number of user and model messages.
    pub(super) spoken: u64,
    pub(super) calls: HashSet<CallId>,
    /// The client tools, as models are offered them.
    pub(super) delegated: Vec<Arc<ToolSpec>>,
    /// The beginning of the first user message.
    pub(super) title: Option<String>,
    /// Positions of system messages.
    pub(crate) instructions: Vec<usize>,
    /// The first turn of which models may read something.
    pub(crate) first_read: usize,
    /// Number of sessions above this one, if it is a subagent.
    pub(super) depth: u32,
    /// Positions of attachments, by name.
    attachment_at: HashMap<String, usize>,
}

/// The size of the history, and the summary of its old part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compaction {
    /// Tokens that the last model call read.
    pub tokens: u64,
    /// The last message of a summary that is being written.
    pub pending: Option<MessageId>,
    /// The newest summary.
    pub summary: Option<HistorySummary>,
    /// The newest summary that ends in an earlier turn; used if the turn of `summary` is
    /// retried.
    pub(super) earlier: Option<HistorySummary>,
    /// Number of messages when `tokens` was counted; `None` once the prompt has changed
    /// otherwise.
    pub(super) counted: Option<usize>,
    /// Results before this message are shortened in prompts.
    pub(crate) shortened: usize,
    /// Tokens at the last summary: the next one is made only when there are clearly more.
    pub(super) floor: u64,
    /// True if the last summary could not be written.
    pub(super) failed: bool,
    /// True if the provider rejected the last prompt as too long.
    pub(super) overflow: bool,
    /// The context window in tokens, if the model turned out to read less than its profile
    /// states.
    pub(super) window: Option<u64>,
}

impl Compaction {
    /// The summaries that may replace old history, best first.
    pub(crate) fn summaries(&self) -> impl Iterator<Item = &HistorySummary> {
        self.summary.iter().chain(&self.earlier)
    }
}

/// Facts of a summary that are to be stored in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingMemory {
    /// The last message of the summary.
    pub upto: MessageId,
    /// When the summary was written.
    pub at: Time,
    /// The facts.
    pub facts: Vec<String>,
}

impl PendingMemory {
    /// The memory entry, for the notes of the day of the summary. Safe to repeat after a
    /// crash.
    pub fn entry(&self) -> MemoryEntry {
        let lines: Vec<_> = self.facts.iter().map(|fact| format!("- {fact}")).collect();
        MemoryEntry { once: Some(self.at), ..MemoryEntry::new(MemoryFile::Daily, lines.join("\n")) }
    }
}

/// An approval decision that applies to more than one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RememberedDecision {
    /// The tool.
    pub tool: String,
    /// The calls of the tool.
    pub calls: CallMatcher,
    /// The answer.
    pub answer: ApprovalDecision,
}

/// Calls of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CallMatcher {
    /// Calls with these arguments.
    Same(Value),
    /// Calls with this in common.
    Similar(String),
}

/// An open approval request of a subagent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SubagentApproval {
    /// The call of this session that the subagent works for, directly or indirectly.
    pub via: CallId,
    /// The session that requested the approval.
    pub session: SessionId,
    /// The request.
    pub question: ApprovalId,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub input: Value,
    /// The assessment that a person is shown.
    pub assessment: Box<Assessment>,
    /// When the request counts as denied.
    pub expires: Option<Time>,
}

/// The summary of old history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistorySummary {
    /// The last message that it covers.
    pub upto: MessageId,
    /// The text.
    pub text: String,
    /// The position of that message.
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

    /// The turn of the message with this key.
    pub fn turn_by_key(&self, key: &str) -> Option<&Turn> {
        self.turns.turn_by_key(key)
    }

    /// The attachment of that name.
    pub fn attachment(&self, name: &str) -> Option<&Attachment> {
        self.attachment_at.get(name).map(|n| &self.attachments[*n])
    }

    /// The position of a message; searched from the end, because recent messages are needed
    /// most.
    pub(crate) fn position(&self, id: &MessageId) -> Option<usize> {
        self.messages.iter().rposition(|message| {
            #[cfg(test)]
            crate::session::tests::scale::visited();
            message.id == *id
        })
    }

    /// True while a turn, a compaction or a revert is in progress.
    pub fn busy(&self) -> bool {
        self.open.is_some() || self.compaction.pending.is_some() || self.reverting.is_some()
    }

    /// True if there is work to do, now or after a crash.
    fn has_work(&self) -> bool {
        self.busy() || !self.saving.is_empty() || self.subagents.orphans().next().is_some()
    }

    /// The subagent session that requested an approval, if it was not this session.
    pub fn approval_session(&self, question: &ApprovalId) -> Option<&SessionId> {
        let own = self.open.as_ref().is_some_and(|open| open.asks(question));
        let asked = self.asked.iter().find(|asked| asked.question == *question && !own);
        asked.map(|asked| &asked.session)
    }

    pub(super) fn add_attachment(&mut self, file: Attachment) {
        self.attachment_at.entry(file.name.clone()).or_insert(self.attachments.len());
        self.attachments.push(file);
    }

    /// Adds a message of a turn; the first user message gives the session its title.
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

    /// The beginning of the newest message of a role that has text.
    fn newest(&self, role: Role) -> String {
        let of_role = self.current_messages().rev().filter(|message| message.role == role);
        of_role.map(|message| first_line(message)).find(|line| !line.is_empty()).unwrap_or_default()
    }

    /// The messages in order, without those of replaced turns.
    pub fn current_messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        let replaced = |turn: &TurnId| self.turns.find(turn).is_some_and(|turn| turn.superseded);
        self.messages.iter().filter(move |message| !replaced(&message.turn))
    }

    /// The summary for lists.
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

    /// The state in a snapshot.
    pub(crate) fn restored(data: SessionData, id: SessionId, rules: Arc<Rules>) -> Self {
        let data = SessionData { id, ..data };
        Self { data, rules, profiles: HashMap::new(), dynamic: Arc::default() }
    }

    /// The data from the journal.
    pub(crate) fn data(&self) -> &SessionData {
        &self.data
    }

    /// Applies events of a journal, in order.
    pub fn replay<'a>(&mut self, records: impl IntoIterator<Item = &'a Record>) {
        for record in records {
            evolve(self, record);
        }
    }

    /// The rules of the session.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The model of the open turn, or of the next one.
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

    /// Sets the dynamic tools.
    pub fn set_dynamic_tools(&mut self, tools: Arc<DynamicTools>) {
        self.dynamic = tools;
    }

    /// Copies the dynamic tools from a newer state of the session.
    pub fn copy_dynamic_tools(&mut self, newest: &Self) {
        self.dynamic = Arc::clone(&newest.dynamic);
    }

    /// The names of all tools that the daemon runs for this session, listed or not.
    pub(super) fn daemon_tool_names(&self) -> impl Iterator<Item = &str> {
        let tools = self.rules.tools.iter().chain(self.dynamic.all());
        tools.map(|tool| tool.name.as_str()).filter(|name| self.toolset.includes(name))
    }

    /// All offered tools. A client tool replaces a daemon tool of the same name.
    pub fn tools(&self) -> Vec<Arc<ToolSpec>> {
        let shadowed = |name: &str| self.delegated.iter().any(|tool| tool.name == name);
        let offered =
            |tool: &&Arc<ToolSpec>| self.toolset.includes(&tool.name) && !shadowed(&tool.name);
        let daemons = self.rules.tools.iter().chain(&self.dynamic.listed).filter(offered);
        daemons.chain(&self.delegated).cloned().collect()
    }

    /// The policy's decision on a call; `subject` is known once the call was assessed.
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
