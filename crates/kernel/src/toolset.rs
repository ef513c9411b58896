//! The tools that a session's models are offered, if a front end chooses them.
//!
//! Part of the journal's format, like the events that contain it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::nesting::depth;
use crate::tool::{Placement, Risk, ToolKind, ToolSpec};

/// Maximum number of client tools.
const CLIENT_TOOLS_LIMIT: usize = 128;
/// Maximum length of a tool name. Some models accept at most 64 and report that.
const TOOL_NAME_LIMIT: usize = 96;
/// Maximum depth of a schema, see the codec.
const SCHEMA_DEPTH_LIMIT: usize = 64;

/// Which tools a session's model is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolset {
    /// The offered daemon tools; all if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon: Option<Vec<String>>,
    /// Tools that clients of the session run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client: Vec<ClientTool>,
    /// Milliseconds that a client has for one call; unlimited if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Tools whose calls state their own duration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<CallTimeout>,
}

/// The timeout of a tool whose calls state their duration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTimeout {
    /// The tool.
    pub tool: String,
    /// The arguments with the duration in seconds, and their defaults.
    pub seconds: BTreeMap<String, u64>,
    /// Additional seconds.
    pub spare: u64,
    /// An argument that, if true, means that the call does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless: Option<String>,
    /// The longest time for calls that are dispatched together, in seconds.
    pub at_most: u64,
}

impl CallTimeout {
    /// The duration that a call states, if it does.
    fn of(&self, input: &Value) -> Option<Duration> {
        let detached = self.unless.as_ref().is_some_and(|name| input[name] == Value::Bool(true));
        let given = |(name, usual): (&String, &u64)| {
            let stated = input[name].as_f64().map(Duration::try_from_secs_f64);
            stated.and_then(Result::ok).unwrap_or(Duration::from_secs(*usual))
        };
        let spare = Duration::from_secs(self.spare);
        let stated = self.seconds.iter().map(given).fold(spare, Duration::saturating_add);
        (!detached).then_some(stated)
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
    /// The risk. Critical tools are refused before a client is involved.
    pub risk: Risk,
    /// True if the tool only reads: another client may repeat a call whose client is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeatable: bool,
    /// The front end that provides the tool: only its clients run it. Any client may if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front_end: Option<String>,
    /// True if the provider must enforce the schema of the arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

impl Toolset {
    /// The client's tool of that name.
    pub fn client_tool(&self, name: &str) -> Option<&ClientTool> {
        self.client.iter().find(|tool| tool.name == name)
    }

    /// True if a daemon tool is offered.
    pub fn includes(&self, name: &str) -> bool {
        self.daemon.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
    }

    /// How long a client has for calls that are dispatched together and run one after the
    /// other: the sum of their stated durations, but for several calls at least the
    /// default.
    pub fn timeout<'a>(
        &self,
        calls: impl Iterator<Item = (&'a str, &'a Value)>,
    ) -> Option<Duration> {
        let usual = Duration::from_millis(self.timeout_ms?);
        let (mut stated, mut silent, mut at_most) = (Vec::new(), 0, usual);
        for (tool, input) in calls {
            let span = self.spans.iter().find(|span| span.tool == tool);
            at_most = at_most.max(Duration::from_secs(span.map_or(0, |span| span.at_most)));
            match span.and_then(|span| span.of(input)) {
                Some(takes) => stated.push(takes),
                None => silent += 1,
            }
        }
        Some(match stated[..] {
            [alone] if silent == 0 => alone.min(at_most),
            _ => {
                let sum = stated.into_iter().fold(Duration::ZERO, Duration::saturating_add);
                sum.clamp(usual, at_most)
            }
        })
    }

    /// What is wrong with the client tools, if anything.
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
    /// The tool as models are offered it. It does not access the daemon's workspace.
    pub(crate) fn spec(&self) -> Arc<ToolSpec> {
        Arc::new(ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            schema: self.schema.clone(),
            kind: if self.repeatable { ToolKind::Read } else { ToolKind::Network },
            placement: Placement::Client,
            strict: self.strict,
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
