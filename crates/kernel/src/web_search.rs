//! Whether a session's model can search the web, through which backend, and why not.
//!
//! The tool `web_search` is used if there is one. Otherwise the model's provider may search,
//! but its searches cannot be approved one by one: so it does not if policy requires approval
//! for them.

use std::sync::Arc;

use serde_json::Value;

use crate::model::{ModelRef, Profile, SearchSupport, WebSearch};
use crate::policy::{Rules, Verdict};
use crate::session::State;
use crate::tool::{Placement, ToolKind, ToolSpec};
use crate::toolset::Toolset;

/// The name of the tool, with which a front end also enables search by the provider.
pub const WEB_SEARCH: &str = "web_search";

/// The description for models and people.
pub const WEB_SEARCH_DESCRIPTION: &str = "Search the web. Gives titles, URLs and short excerpts of the pages \
that fit best, not the pages themselves.";

/// Whether a model can search the web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchAvailability {
    /// True if the front end enabled search.
    pub enabled: bool,
    /// The backend, or why there is none.
    pub by: Result<SearchBackend, String>,
}

/// The component that searches the web.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchBackend {
    /// The tool `web_search`.
    Tool,
    /// The model's provider, during its response.
    Provider,
}

impl SearchAvailability {
    /// True if there is a backend.
    pub fn available(&self) -> bool {
        self.by.is_ok()
    }

    /// Why there is no backend.
    pub fn reason(&self) -> Option<&str> {
        self.by.as_ref().err().map(String::as_str)
    }
}

/// Whether a model can search the web in a session with these tools.
pub fn availability(
    rules: &Rules,
    toolset: &Toolset,
    (model, profile): (&ModelRef, Option<&Profile>),
) -> SearchAvailability {
    let client = toolset.client_tool(WEB_SEARCH).is_some();
    let enabled = client || toolset.includes(WEB_SEARCH);
    SearchAvailability { enabled, by: search_backend(rules, toolset, (model, profile)) }
}

/// The same for front ends that cannot request approvals: searches that need one are not
/// available.
pub fn availability_unattended(
    rules: &Rules,
    toolset: &Toolset,
    model: (&ModelRef, Option<&Profile>),
) -> SearchAvailability {
    let SearchAvailability { enabled, by } = availability(rules, toolset, model);
    SearchAvailability { enabled, by: by.and_then(|by| check_unattended(rules).map(|()| by)) }
}

/// The search setting of a prompt. The provider does not search if the tool exists.
pub(crate) fn provider_search(state: &State, model: &ModelRef) -> WebSearch {
    let found = availability(&state.rules, &state.toolset, (model, state.profile(model)));
    if found.enabled && found.by == Ok(SearchBackend::Provider) {
        WebSearch::Native
    } else {
        WebSearch::Off
    }
}

fn search_backend(
    rules: &Rules,
    toolset: &Toolset,
    (model, profile): (&ModelRef, Option<&Profile>),
) -> Result<SearchBackend, String> {
    let profile = profile.ok_or_else(|| format!("there is no provider {:?}", model.provider))?;
    if toolset.client_tool(WEB_SEARCH).is_some() || rules.tool(WEB_SEARCH).is_some() {
        return if profile.tools {
            Ok(SearchBackend::Tool)
        } else {
            Err(format!("{model} cannot call tools"))
        };
    }
    let tools = if profile.tools { offered_tool_count(rules, toolset) } else { 0 };
    match profile.search {
        SearchSupport::Never => {
            Err(format!("no search API is set up, and {model} has no search of its own"))
        }
        SearchSupport::Off => Err("no search API is set up, and search by providers is off".into()),
        search if !search.available_with(tools) => {
            Err(format!("{model} searches only where it is offered no tools"))
        }
        SearchSupport::WithoutTools | SearchSupport::WithTools => {
            check_unattended(rules).map(|()| SearchBackend::Provider)
        }
    }
}

/// Number of offered tools.
fn offered_tool_count(rules: &Rules, toolset: &Toolset) -> usize {
    let daemon = |tool: &&Arc<ToolSpec>| toolset.includes(&tool.name);
    rules.tools.iter().filter(daemon).count() + toolset.client.len()
}

/// Fails if searches need approval.
fn check_unattended(rules: &Rules) -> Result<(), String> {
    let tool = ToolSpec {
        name: WEB_SEARCH.into(),
        description: String::new(),
        schema: Value::Null,
        kind: ToolKind::Network,
        placement: Placement::Daemon,
        strict: false,
    };
    match rules.verdict(&tool, None) {
        Verdict::Allow => Ok(()),
        Verdict::Refuse(why) => Err(why),
        Verdict::Ask | Verdict::Assess => {
            Err("each search needs approval, which the provider cannot wait for".into())
        }
    }
}

#[cfg(test)]
mod tests;
