//! The tool with which a model asks the person something. Clients show the question and answer it.

use quintet_kernel::tool::Risk;
use quintet_kernel::toolset::{ClientTool, Toolset};
use serde_json::json;

/// All of the daemon's tools and the question.
pub(super) fn toolset() -> Toolset {
    let question = ClientTool {
        name: "ask_user".into(),
        description:
            "Ask the person a question and wait for the answer. Use it when you cannot go \
                      on without a decision or a fact that only the person has."
                .into(),
        schema: json!({
            "type": "object",
            "properties": {
                "question": { "type": "string", "description": "The question." },
                "options": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Answers to choose from, where there are some.",
                },
            },
            "required": ["question"],
        }),
        risk: Risk::Low,
        repeatable: true,
    };
    Toolset { client: vec![question], ..Toolset::default() }
}
