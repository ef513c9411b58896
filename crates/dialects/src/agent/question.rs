//! The tool with which a model asks the user a question. Clients show the question and answer it.

use quintet_kernel::question::Question;
use quintet_kernel::tool::Risk;
use quintet_kernel::toolset::{ClientTool, Toolset};
use serde_json::{Value, json};

/// The name of this front end, and of all its clients: a question is shown to all of them, and the first
/// answer claims it.
pub(super) const FRONT_END: &str = "agent";

/// True if a call is a question of this front end, not a tool that clients of another one run.
pub(super) fn is_question(front_end: Option<&str>) -> bool {
    front_end.is_none_or(|front_end| front_end == FRONT_END)
}

/// A question of a running call as arguments of `ask_user`.
pub(super) fn question_arguments(question: &Question) -> Value {
    let mut arguments = question.as_input();
    let labels = question.choices().into_iter().map(|choice| choice.label);
    arguments["question"] = question.message.as_str().into();
    arguments["options"] = labels.collect::<Vec<_>>().into();
    arguments
}

/// All tools of the daemon, and `ask_user`.
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
        front_end: Some(FRONT_END.into()),
        strict: false,
    };
    Toolset { client: vec![question], ..Toolset::default() }
}
