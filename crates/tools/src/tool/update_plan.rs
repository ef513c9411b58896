//! `update_plan`: the steps of a long task, which front ends show to the person.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::{input, show};

/// The most steps of a plan.
const STEPS_LIMIT: usize = 50;

/// The tool. The plan itself is in the arguments of the call, and so in the journal.
pub(crate) struct UpdatePlan {
    spec: Arc<ToolSpec>,
}

#[derive(Debug, Deserialize)]
struct Input {
    plan: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    status: String,
}

impl UpdatePlan {
    pub(crate) fn new() -> Self {
        let description = "Show the person the steps of a longer task and how far they are. Give \
                           all steps each time; at most one is in progress. Not for short tasks."
            .to_owned();
        let step = json!({
            "type": "object",
            "properties": {
                "step": { "type": "string", "minLength": 1, "description": "What is to be done" },
                "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
            },
            "required": ["step", "status"],
            "additionalProperties": false,
        });
        let properties = json!({
            "plan": { "type": "array", "items": step, "maxItems": STEPS_LIMIT },
        });
        Self {
            spec: super::spec(ToolKind::Read, "update_plan", description, properties, &["plan"]),
        }
    }
}

impl Tool for UpdatePlan {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = summary(call).map(|text| (text, None));
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(std::future::ready(match summary(&call) {
            Ok(text) => Outcome::success(text).into(),
            Err(why) => Outcome::failure(why).into(),
        }))
    }
}

fn summary(call: &Invocation) -> Result<String, String> {
    let Input { plan } = input::parse(&call.input)?;
    let done = plan.iter().filter(|step| step.status == "completed").count();
    Ok(format!("{done} of {} completed", show::count(plan.len(), "step")))
}
