//! A tool whose arguments are checked against its schema before it sees them.

use std::sync::{Arc, OnceLock};

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolSpec};

use crate::schema::Schema;
use crate::tool::nothing_will_run;

/// The tool, and what its arguments must be.
pub(crate) struct ValidatedTool {
    tool: Arc<dyn Tool>,
    /// Read by the first call: it takes milliseconds, which a start of the daemon should not pay.
    schema: OnceLock<Schema>,
}

impl ValidatedTool {
    pub(crate) fn new(tool: Arc<dyn Tool>) -> Self {
        Self { tool, schema: OnceLock::new() }
    }

    fn schema(&self) -> &Schema {
        let read = || Schema::new(&self.tool.spec().schema).expect("our own schemas are valid");
        self.schema.get_or_init(read)
    }
}

impl Tool for ValidatedTool {
    fn spec(&self) -> Arc<ToolSpec> {
        self.tool.spec()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let mut call = call.clone();
            match self.schema().accept(call.input.take()) {
                Ok(input) => {
                    call.input = input;
                    self.tool.assess(&call).await
                }
                Err(why) => nothing_will_run(why),
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        match self.schema().accept(call.input) {
            Ok(input) => self.tool.run(Invocation { input, ..call }, context),
            Err(why) => Box::pin(std::future::ready(Outcome::failure(why).into())),
        }
    }
}
