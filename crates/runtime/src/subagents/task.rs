//! The arguments of a call that starts a subagent.

use quintet_kernel::event::Budget;
use quintet_kernel::model::ModelRef;
use quintet_kernel::subagent::Task;
use serde_json::{Value, json};

/// The JSON Schema of the arguments.
pub(super) fn schema() -> Value {
    let whole = |about: &str| json!({ "type": "integer", "minimum": 1, "description": about });
    json!({
        "type": "object",
        "properties": {
            "task": { "type": "string", "description": "What to do, and what to report." },
            "model": { "type": "string", "description": "provider/model, unless the same as yours." },
            "tools": {
                "type": "array",
                "items": { "type": "string" },
                "description": "The only tools it may use, unless all of yours.",
            },
            "max_steps": whole("How often its model may be asked."),
            "max_tokens": whole("How many tokens it may read and write."),
            "max_seconds": whole("How long it may take."),
        },
        "required": ["task"],
    })
}

/// Parses the arguments. Fails with a message for the model.
pub(super) fn read(input: &Value) -> Result<Task, String> {
    let text = input["task"].as_str().filter(|task| !task.trim().is_empty());
    let text = text.ok_or("task must say what to do")?.to_owned();
    let steps = whole(input, "max_steps")?;
    let budget = Budget {
        steps: steps.map(|steps| u32::try_from(steps).unwrap_or(u32::MAX)),
        tokens: whole(input, "max_tokens")?,
        time_ms: whole(input, "max_seconds")?.map(|seconds| seconds.saturating_mul(1000)),
    };
    Ok(Task { text, model: model(&input["model"])?, tools: tools(&input["tools"])?, budget })
}

fn model(given: &Value) -> Result<Option<ModelRef>, String> {
    match given {
        Value::Null => Ok(None),
        Value::String(name) => match ModelRef::parse(name) {
            Some(model) => Ok(Some(model)),
            None => Err(format!("{name} is not of the form provider/model")),
        },
        _ => Err("model must be a string".into()),
    }
}

fn tools(given: &Value) -> Result<Option<Vec<String>>, String> {
    let wrong = || "tools must be a list of names".to_owned();
    match given {
        Value::Null => Ok(None),
        Value::Array(names) => {
            let names = names.iter().map(|name| name.as_str().map(str::to_owned));
            Ok(Some(names.collect::<Option<Vec<String>>>().ok_or_else(wrong)?))
        }
        _ => Err(wrong()),
    }
}

fn whole(input: &Value, name: &str) -> Result<Option<u64>, String> {
    match &input[name] {
        Value::Null => Ok(None),
        given => match given.as_u64().filter(|number| *number > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name} must be a whole number above 0")),
        },
    }
}
