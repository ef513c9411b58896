//! The tree of a session's subagents and forks, with the compactions of each.

use std::collections::{HashMap, HashSet};

use quintet_kernel::port::Error;
use quintet_kernel::{SessionId, SessionSummary};
use serde_json::{Value, json};

use super::shape;
use super::usage::{Sources, UsageCache};

/// The number of recently used sessions that are considered.
const SESSIONS_LIMIT: usize = 1_000;
/// The most levels of a tree.
const DEPTH_LIMIT: usize = 64;

/// The tree that contains a session, from its oldest ancestor that still exists.
pub(super) async fn tree(
    usage: &UsageCache,
    sources: &Sources<'_>,
    session: &SessionId,
) -> Result<Value, Error> {
    let sessions = sources.sessions;
    let own = sessions.summary(session).await?;
    let recent = sessions.recent(None, SESSIONS_LIMIT).await?;
    let mut all: HashMap<SessionId, SessionSummary> =
        recent.into_iter().map(|summary| (summary.id.clone(), summary)).collect();
    let mut root = own.id.clone();
    all.insert(own.id.clone(), own);
    for _ in 0..DEPTH_LIMIT {
        let Some(above) = all.get(&root).and_then(above) else { break };
        if !all.contains_key(&above) {
            let Ok(summary) = sessions.summary(&above).await else { break };
            all.insert(above.clone(), summary);
        }
        root = above;
    }
    let mut tree = Tree::new(&all);
    for summary in tree.members(&root) {
        let compactions = usage.compactions(sources, summary).await?;
        tree.compactions.insert(&summary.id, compactions);
    }
    Ok(tree.encode(&root))
}

/// The session that a session was forked from or, for a subagent, its parent.
fn above(summary: &SessionSummary) -> Option<SessionId> {
    match &summary.forked {
        Some(fork) => Some(fork.parent.clone()),
        None => summary.labels.get("parent").and_then(|id| SessionId::parse(id)),
    }
}

struct Tree<'a> {
    all: &'a HashMap<SessionId, SessionSummary>,
    below: HashMap<SessionId, Vec<&'a SessionSummary>>,
    compactions: HashMap<&'a SessionId, Vec<Value>>,
}

impl<'a> Tree<'a> {
    fn new(all: &'a HashMap<SessionId, SessionSummary>) -> Self {
        let mut below: HashMap<SessionId, Vec<&SessionSummary>> = HashMap::new();
        for summary in all.values() {
            if let Some(above) = above(summary) {
                below.entry(above).or_default().push(summary);
            }
        }
        for children in below.values_mut() {
            children.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        }
        Self { all, below, compactions: HashMap::new() }
    }

    /// The sessions of a tree.
    fn members(&self, root: &SessionId) -> Vec<&'a SessionSummary> {
        let (mut members, mut seen) = (Vec::new(), HashSet::new());
        let mut next: Vec<&SessionSummary> = self.all.get(root).into_iter().collect();
        while let Some(summary) = next.pop() {
            if seen.insert(&summary.id) {
                members.push(summary);
                next.extend(self.below.get(&summary.id).into_iter().flatten());
            }
        }
        members
    }

    fn encode(&self, root: &SessionId) -> Value {
        let mut seen = HashSet::new();
        match self.all.get(root) {
            Some(summary) => self.node(summary, DEPTH_LIMIT, &mut seen),
            None => Value::Null,
        }
    }

    fn node(
        &self,
        summary: &'a SessionSummary,
        depth: usize,
        seen: &mut HashSet<&'a SessionId>,
    ) -> Value {
        seen.insert(&summary.id);
        let mut below = Vec::new();
        for child in self.below.get(&summary.id).into_iter().flatten() {
            if depth > 0 && !seen.contains(&child.id) {
                below.push(self.node(child, depth - 1, seen));
            }
        }
        json!({
            "id": summary.id.as_str(), "title": shape::title(summary),
            "status": shape::status(summary), "tokens": summary.usage.total(),
            "created": summary.created.micros(),
            "forked_at": summary.forked.as_ref().map(|fork| fork.at), "below": below,
            "compactions": self.compactions.get(&summary.id),
        })
    }
}

#[cfg(test)]
mod tests;
