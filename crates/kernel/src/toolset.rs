//! Which tools a session's model is offered, where a front end chooses.
//!
//! Part of the journal's format, like the events that hold it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::nesting::depth;
use crate::tool::{Placement, Risk, ToolKind, ToolSpec};

/// How many tools a client may bring.
const CLIENT_TOOLS_LIMIT: usize = 128;
/// How long a tool's name may be. Some models take no more than 64, and say so.
const TOOL_NAME_LIMIT: usize = 96;
/// How deep a schema may be, see the codec.
const SCHEMA_DEPTH_LIMIT: usize = 64;

/// Which tools a session's model is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolset {
    /// Of the daemon's tools only these; all of them if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<Vec<String>>,
    /// Tools that clients of the session run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client: Vec<ClientTool>,
    /// How long a client has for one call, in milliseconds; for ever if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Which calls say themselves how long they take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<CallTimeout>,
}

/// A tool whose calls say how long they take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimeout {
    /// The tool.
    pub tool: String,
    /// The arguments that say it, in seconds, and what counts where one is not given.
    pub seconds: BTreeMap<String, u64>,
    /// What is allowed beyond that, in seconds.
    pub spare: u64,
    /// An argument that says, where it is true, that a call does not wait for what it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// The longest that a client has for calls that it is handed together, in seconds.
    pub at_most: u64,
}

impl CallTimeout {
    /// How long a call takes, if it says so.
    fn of(&self, input: &Value) -> Option<Duration> {
        let detached = self.unless.as_ref().is_some_and(|name| input[name] == Value::Bool(true));
        let given = |(name, usual): (&String, &u64)| {
            let said = input[name].as_f64().map(Duration::try_from_secs_f64);
            said.and_then(Result::ok).unwrap_or(Duration::from_secs(*usual))
        };
        let spare = Duration::from_secs(self.spare);
        let said = self.seconds.iter().map(given).fold(spare, Duration::saturating_add);
        (!detached).then_some(said)
    }
}

/// A tool that clients run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientTool {
    /// The name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
    /// How bad it can get. What should not be done is refused before a client hears of it.
    pub risk: Risk,
    /// True if it only looks: another client may run a call again whose client is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// The front end that brought the tool: its clients alone run it. Any client may if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<String>,
}

impl Toolset {
    /// The client's tool of that name.
    pub fn client_tool(&self, name: &str) -> Option<&ClientTool> {
        self.client.iter().find(|tool| tool.name == name)
    }

    /// Whether a tool of the daemon is offered.
    pub fn includes(&self, name: &str) -> bool {
        self.daemon.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    }

    /// How long a client has for calls that it is handed together, and does one after the other: as
    /// long as they say, but several never less than one has that does not say.
    pub fn timeout<'a>(
        &self,
        calls: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> Option<Duration> {
        let usual = Duration::from_millis(self.timeout_ms?);
        let (mut said, mut silent, mut at_most) = (Vec::new(), 0, usual);
        for (tool, input) in calls {
            let span = self.spans.iter().find(|span| span.tool == tool);
            at_most = at_most.max(Duration::from_secs(span.map_or(0, |span| span.at_most)));
            match span.and_then(|span| span.of(input)) {
                Some(takes) => said.push(takes),
                None => silent += 1,
            }
        }
        Some(match said[..] {
            [alone] if silent == 0 => alone.min(at_most),
            _ => {
                let sum = said.into_iter().fold(Duration::ZERO, Duration::saturating_add);
                sum.clamp(usual, at_most)
            }
        })
    }

    /// What is wrong with the client's tools, if anything is.
    pub fn validation_error(&self) -> Option<String> {
        if self.client.len() > CLIENT_TOOLS_LIMIT {
            return Some(format!(
                "there are {} tools, and at most {CLIENT_TOOLS_LIMIT} are taken",
                self.client.len()
            ));
        }
        let mut seen = HashSet::new();
        let twice = self.client.iter().find(|tool| !seen.insert(tool.name.as_str()));
        match twice {
            Some(tool) => Some(format!("tool {} is there twice", tool.name)),
            None => self.client.iter().find_map(ClientTool::validation_error),
        }
    }
}

impl ClientTool {
    /// The tool as a model is offered it. What it touches is not the workspace of the daemon.
    pub(crate) fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            schema: self.schema.clone(),
            kind: if self.repeatable { ToolKind::Read } else { ToolKind::Network },
            placement: Placement::Client,
        })
    }

    fn validation_error(&self) -> Option<String> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        let named =
            (1..=TOOL_NAME_LIMIT).contains(&self.name.len()) && self.name.bytes().all(plain);
        if !named {
            return Some(format!(
                "{:?} is no name for a tool: 1 to {TOOL_NAME_LIMIT} letters, digits, \"_\" or \"-\"",
                self.name
            ));
        }
        if !self.schema.is_object() {
            return Some(format!("the parameters of tool {} are not a JSON Schema", self.name));
        }
        let deep = depth(&self.schema) > SCHEMA_DEPTH_LIMIT;
        deep.then(|| format!("the parameters of tool {} are nested too deeply", self.name))
    }
}
