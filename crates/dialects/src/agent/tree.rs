//! The tree of a session's events and of its forks.

use std::collections::HashMap;

use quintet_kernel::event::Seq;
use quintet_kernel::{SessionId, SessionSummary};
use serde_json::{Value, json};

use super::context_detail::summary;
use super::dispatch::{Reply, rpc_error};
use super::event_id::event_id;
use super::request::EventQuery;
use super::serve::AppState;
use super::shape;
use crate::jsonrpc::Error;

/// The most events of a tree; the newest ones are shown.
const NODES_LIMIT: usize = 10_000;

impl AppState {
    pub(super) async fn branches(&self, session: &SessionId) -> Result<Reply, Error> {
        let sessions = &self.services.sessions;
        let summary = self.services.sessions.summary(session).await.map_err(rpc_error)?;
        let forks = sessions.forks(session).await.map_err(rpc_error)?;
        let show = |summary| shape::session(summary, &self.settings.default_model);
        Ok(json!({
            "session": show(&summary),
            "branches": forks.iter().map(show).collect::<Vec<_>>(),
            "mainBranch": branch(&summary),
            "forks": forks.iter().map(branch).collect::<Vec<_>>(),
        })
        .into())
    }

    /// An event and its ancestors, also in the sessions that this one was forked from.
    pub(super) async fn ancestors(&self, query: &EventQuery) -> Result<Reply, Error> {
        let history = self.history(&query.session).await?;
        let (mut events, _) = history.before(query).await.map_err(rpc_error)?;
        let target = events.first().cloned();
        events.reverse();
        Ok(json!({ "events": events, "ancestors": events, "targetEvent": target }).into())
    }

    pub(super) async fn tree(&self, session: SessionId, messages: bool) -> Result<Reply, Error> {
        let history = self.history(&session).await?;
        let query = EventQuery {
            limit: Some(NODES_LIMIT),
            original: true,
            ..EventQuery::all(session.clone())
        };
        let (mut events, _) = history.before(&query).await.map_err(rpc_error)?;
        events.reverse();
        let forks = self.services.sessions.forks(&session).await.map_err(rpc_error)?;
        let head = events.last().map(|event| event["id"].clone());
        let count = events.len();
        let is_shown = |event: &Value| {
            !messages || event["type"].as_str().is_some_and(|kind| kind.starts_with("message."))
        };
        events.retain(is_shown);
        let nodes = nodes(&events, &forks, head.as_ref());
        Ok(json!({
            "sessionId": session.as_str(),
            "rootEventId": events.first().map(|event| event["id"].clone()),
            "headEventId": head,
            "nodes": nodes,
            "totalEvents": count,
        })
        .into())
    }
}

/// A session as a branch.
fn branch(summary: &SessionSummary) -> Value {
    let title =
        summary.labels.get("title").filter(|title| !title.is_empty()).unwrap_or(&summary.title);
    let fork = summary.forked.as_ref().map(|fork| event_id(&fork.parent, fork.at));
    json!({
        "sessionId": summary.id.as_str(),
        "name": title,
        "forkEventId": fork.unwrap_or_else(|| event_id(&summary.id, 1)),
        "headEventId": event_id(&summary.id, summary.head),
        "messageCount": summary.messages,
        "createdAt": summary.created.to_rfc3339_millis(),
        "lastActivity": summary.updated.to_rfc3339_millis(),
    })
}

/// The nodes of a tree. Events are a chain; an event that others forked from has more than one child.
fn nodes(events: &[Value], forks: &[SessionSummary], head: Option<&Value>) -> Vec<Value> {
    let mut branched: HashMap<Seq, usize> = HashMap::new();
    for fork in forks.iter().filter_map(|summary| summary.forked.as_ref()) {
        *branched.entry(fork.at).or_default() += 1;
    }
    let mut parent = Value::Null;
    let mut nodes = Vec::with_capacity(events.len());
    for (depth, event) in events.iter().enumerate() {
        let seq = event["sequence"].as_u64().unwrap_or(0);
        let here = branched.get(&seq).copied().unwrap_or(0);
        let children = usize::from(depth + 1 < events.len()) + here;
        nodes.push(json!({
            "id": event["id"],
            "parentId": parent,
            "type": event["type"],
            "timestamp": event["timestamp"],
            "summary": summary(&summary_of(event)),
            "hasChildren": children > 0,
            "childCount": children,
            "depth": depth,
            "isBranchPoint": children > 1,
            "isHead": Some(&event["id"]) == head,
        }));
        parent = event["id"].clone();
    }
    nodes
}

/// A short description of an event.
fn summary_of(event: &Value) -> String {
    let payload = &event["payload"];
    let text = match &payload["content"] {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            Some(texts.collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
        }
        _ => None,
    };
    let name = || payload["name"].as_str().map(str::to_owned);
    text.or_else(name).unwrap_or_else(|| event["type"].as_str().unwrap_or_default().to_owned())
}
