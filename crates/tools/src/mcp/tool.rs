//! A tool of a server, as sessions call it.

use std::sync::Arc;

use quintet_kernel::change::Gap;
use quintet_kernel::port::{BoxFuture, Desk, Invocation, Output, Tool};
use quintet_kernel::tool::{Assessment, Ending, Kind, Outcome, Placement, Risk, Spec, Subject};
use serde_json::Value;

use super::connection::Called;
use super::result;
use super::server::Core;
use super::tool_list::ListedTool;
use crate::show;

/// A tool of a server.
pub(super) struct McpTool {
    spec: Arc<Spec>,
    server: Arc<Core>,
    /// The server's own name for it.
    tool: String,
}

impl McpTool {
    /// The tool under the name that models call it by. What a server says of its tools' harmlessness
    /// is not believed: each counts as running a command.
    pub(super) fn new(name: String, server: Arc<Core>, tool: &ListedTool) -> Self {
        let spec = Arc::new(Spec {
            name,
            description: tool.description.clone(),
            schema: tool.schema.clone(),
            kind: Kind::Exec,
            placement: Placement::Daemon,
        });
        Self { spec, server, tool: tool.name.clone() }
    }

    async fn call(&self, call: Invocation, desk: &Desk) -> Output {
        let Value::Object(arguments) = call.input else {
            return Outcome::failure("invalid input: an object is required").into();
        };
        let connection = tokio::select! {
            connection = self.server.ready() => connection,
            () = desk.cancel.cancelled() => return cancelled(),
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(why) => return Outcome::failure(why).into(),
        };
        let timeout = self.server.definition.timeout;
        let mut output = match connection.call(&self.tool, arguments, timeout, desk).await {
            Called::Answered(answer) => result::output(*answer),
            Called::Refused(why) => Outcome::failure(why).into(),
            Called::Unknown(why) => Outcome::failure(format!(
                "the connection broke during the call, which may have taken effect: {why}; look \
                 before you call it again"
            ))
            .into(),
            Called::TimedOut(after) => {
                Outcome::failure(format!("timed out after {}s", after.as_secs())).into()
            }
            Called::Cancelled => cancelled(),
        };
        output.outcome.unrecorded.push(Gap {
            path: String::new(),
            paths: None,
            reason: format!("the MCP server {} may have changed files", self.server.name()),
        });
        output
    }
}

fn cancelled() -> Output {
    Outcome::ended(Ending::Cancelled, "cancelled").into()
}

impl Tool for McpTool {
    fn spec(&self) -> Arc<Spec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let server = self.server.name();
        let arguments = format!("{:#}", call.input);
        let preview =
            show::preview(&format!("{} of the MCP server {server}\n{arguments}", self.tool));
        let assessment = Assessment {
            risk: Risk::Medium,
            reasons: vec![format!("the MCP server {server} runs it, outside the sandbox")],
            reversible: false,
            preview,
            subject: Subject {
                similar: Some(format!("calls of {}", self.spec.name)),
                ..Subject::default()
            },
            settled: None,
        };
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
        Box::pin(async move { self.call(call, &desk).await })
    }
}
