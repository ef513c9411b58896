//! A tool of a server, as sessions call it.

use std::sync::Arc;

use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{
    Assessment, CallSubject, Ending, Outcome, Placement, Risk, ToolKind, ToolSpec,
};
use serde_json::Value;

use super::connection::Called;
use super::result;
use super::server::Core;
use super::tool_list::ListedTool;
use crate::show;

/// A tool of a server.
pub(super) struct McpTool {
    spec: Arc<ToolSpec>,
    server: Arc<Core>,
    /// The server's own name for it.
    tool: String,
}

impl McpTool {
    /// The tool under the name that models call it by. What a server says of its tools' harmlessness
    /// is not believed: each counts as running a command.
    pub(super) fn new(name: String, server: Arc<Core>, tool: &ListedTool) -> Self {
        let spec = Arc::new(ToolSpec {
            name,
            description: tool.description.clone(),
            schema: tool.schema.clone(),
            kind: ToolKind::Exec,
            placement: Placement::Daemon,
            strict: false,
        });
        Self { spec, server, tool: tool.name.clone() }
    }

    async fn call(&self, call: Invocation, context: &ToolContext) -> ToolOutput {
        let Value::Object(arguments) = call.input else {
            return Outcome::failure("invalid input: an object is required").into();
        };
        let connection = tokio::select! {
            connection = self.server.ready() => connection,
            () = context.cancel.cancelled() => return cancelled(),
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(why) => return Outcome::failure(why).into(),
        };
        let server = &self.server.definition;
        let mut output = match connection
            .call(server, &self.tool, arguments, (&call.session, context))
            .await
        {
            Called::Answered(answer) => result::output(*answer),
            Called::Refused(why) => Outcome::failure(why).into(),
            Called::LoginNeeded(remedy) => {
                self.server.await_login();
                let name = &server.name;
                Outcome::failure(format!("the MCP server {name}: {remedy}")).into()
            }
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
        output.outcome.unrecorded.push(UnrecordedChange {
            path: String::new(),
            paths: None,
            reason: format!("the MCP server {} may have changed files", self.server.name()),
        });
        output
    }
}

fn cancelled() -> ToolOutput {
    Outcome::ended(Ending::Cancelled, "cancelled").into()
}

impl Tool for McpTool {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let server = self.server.name();
        let arguments = format!("{:#}", call.input);
        let preview =
            show::preview(&format!("{} of the MCP server {server}\n{arguments}", self.tool));
        let place = if self.server.is_unconfined() { ", outside the sandbox" } else { "" };
        let assessment = Assessment {
            risk: Risk::Medium,
            reasons: vec![format!("the MCP server {server} runs it{place}")],
            reversible: false,
            preview,
            subject: CallSubject {
                similar: Some(format!("calls of {}", self.spec.name)),
                ..CallSubject::default()
            },
            settled: None,
        };
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move { self.call(call, &context).await })
    }
}
