//! The order of instructions, and the ones of the daemon where the client has none.

use serde_json::json;

use super::*;
use crate::windie::fields;
use crate::windie::wire::agent_definition::layers;

fn layer(id: &str, priority: i64) -> serde_json::Value {
    json!({ "id": id, "type": "note", "priority": priority, "content": id })
}

#[test]
fn layers_stand_by_priority_and_then_by_where_they_come_from() {
    let definition = Definition::read(&json!({
        "system_prompt": { "mode": "replace", "content": "Be brief." },
        "plugins": [{ "id": "p", "prompt_layers": [layer("plugin", 100), layer("urgent", 0)] }],
        "prompt_layers": [layer("layer", 100)],
        "skills": [layer("skill", 100)],
        "agents_md": [layer("agents", 100), layer("last", 1000)],
        "runtime": { "operating_system": "Linux" },
    }));
    let queried = json!({ "layers": [layer("b", 9), layer("a", 3)] });
    let queried = fields::read("payload", &queried, |payload| layers(payload, "layers"));
    let text = system_prompt(&definition.unwrap(), &queried.unwrap());
    let expected =
        "Be brief.|The user's computer runs Linux.|urgent|agents|skill|layer|plugin|last|a|b";
    assert_eq!(text.replace("\n\n", "|"), expected);
}

#[test]
fn without_a_word_of_the_client_ours_counts() {
    let ours = system_prompt(&Definition::default(), &[]);
    assert_eq!(ours, DEFAULT);
    let kept = json!({ "system_prompt": { "mode": "default", "content": "not this" } });
    assert_eq!(system_prompt(&Definition::read(&kept).unwrap(), &[]), DEFAULT);
}
