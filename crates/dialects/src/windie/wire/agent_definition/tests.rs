//! Valid definitions, and the errors for invalid ones.

use serde_json::{Value, json};

use super::*;

/// What is wrong with a definition; nothing if it is taken.
#[track_caller]
fn check(definition: &Value, wrong: &str) {
    let said = Definition::read(definition).err().map(|wrong| wrong.to_string());
    let expected = wrong.replace("@", "agent_definition");
    assert_eq!(said.unwrap_or_default(), expected, "{definition}");
}

#[test]
fn what_the_stock_client_sends_is_taken() {
    let definition = json!({
        "version": 1, "id": "agent-1", "name": "Agent",
        "system_prompt": { "mode": "replace", "content": "Be brief." },
        "tools": { "mode": "client_only", "client_manifest": { "version": 1, "tools": [] } },
        "skills": [], "plugins": [{ "path": "./plugins/repo-agent" }],
        "runtime": { "workspace_path": "/tmp", "operating_system": "Linux" },
        "metadata": { "client_capability_revision": "cap_1", "client_capability": { "a": 1 } },
    });
    let read = Definition::read(&definition).unwrap();
    assert_eq!(read.system_prompt.as_deref(), Some("Be brief."));
    assert_eq!(read.tools.mode, ToolsMode::ClientOnly);
    assert_eq!(read.runtime.workspace_path.as_deref(), Some("/tmp"));
    assert_eq!(read.id.as_deref(), Some("agent-1"));
}

#[test]
fn what_the_specification_shows_is_taken() {
    let tools = json!({
        "mode": "explicit",
        "available_tools": ["mouse_control", " mouse_control ", "web_search"],
        "disabled_tools": ["browser", "browser"],
        "disabled_capabilities": ["ocr", "vision", "ocr"],
    });
    let runtime = json!({ "operating_system": "macOS", "coordinate_methods": ["manual"] });
    let definition = json!({ "version": 1, "tools": tools, "runtime": runtime });
    let read = Definition::read(&definition).unwrap();
    assert_eq!(read.tools.available_tools.unwrap(), ["mouse_control", "web_search"]);
    assert_eq!(read.tools.disabled_tools, ["browser"]);
    assert_eq!(read.tools.disabled_capabilities, [Capability::Ocr, Capability::Vision]);
    assert_eq!(read.runtime.coordinate_methods.unwrap(), [Method::Manual]);
}

#[test]
fn nothing_is_needed_and_null_is_nothing() {
    assert_eq!(Definition::read(&json!({})).unwrap(), Definition::default());
    let nulls: serde_json::Map<String, Value> =
        MEMBERS.split(' ').map(|name| (name.into(), json!(null))).collect();
    assert_eq!(Definition::read(&nulls.into()).unwrap(), Definition::default());
    assert_eq!(Definition::default().tools.mode, ToolsMode::DefaultPlusClient);
}

#[test]
fn unknown_members_are_named_at_every_level() {
    let extra = "Extra inputs are not permitted";
    check(&json!({ "x": 1 }), &format!("@.x: {extra}"));
    check(&json!({ "system_prompt": { "x": 1 } }), &format!("@.system_prompt.x: {extra}"));
    check(&json!({ "tools": { "x": 1 } }), &format!("@.tools.x: {extra}"));
    check(&json!({ "runtime": { "x": 1 } }), &format!("@.runtime.x: {extra}"));
    check(&json!({ "plugins": [{ "id": "p", "x": 1 }] }), &format!("@.plugins.0.x: {extra}"));
    let layer = json!({ "id": "a", "type": "b", "content": "c", "x": 1 });
    for list in ["agents_md", "skills", "prompt_layers"] {
        check(&json!({ list: [layer] }), &format!("@.{list}.0.x: {extra}"));
    }
    let plugin = json!({ "id": "p", "prompt_layers": [layer] });
    check(&json!({ "plugins": [plugin] }), &format!("@.plugins.0.prompt_layers.0.x: {extra}"));
}

/// Checks lines of a definition and what is wrong with it.
#[track_caller]
fn check_all(lines: &str) {
    for line in lines.trim().lines() {
        let (definition, wrong) = line.trim().split_once(" => ").unwrap();
        check(&serde_json::from_str(definition).unwrap(), wrong);
    }
}

#[test]
fn everything_has_its_type() {
    check_all(
        r#"
        [] => @: Input should be a valid dictionary
        {"version":2} => @.version: Input should be 1
        {"version":"1"} => @.version: Input should be 1
        {"id":7} => @.id: Input should be a valid string
        {"tools":[]} => @.tools: Input should be a valid dictionary
        {"skills":{}} => @.skills: Input should be a valid list
        {"skills":[1]} => @.skills.0: Input should be a valid dictionary
        {"metadata":1} => @.metadata: Input should be a valid dictionary
        {"tools":{"available_tools":[" ",1]}} => @.tools.available_tools.0: String should have at least 1 character; @.tools.available_tools.1: Input should be a valid string
        "#,
    );
}

#[test]
fn words_are_among_those_there_are() {
    check_all(
        r#"
        {"mode":"x"} => @.mode: Input should be 'default', 'default_plus_overrides' or 'custom'
        {"system_prompt":{"mode":"append"}} => @.system_prompt.mode: Input should be 'default' or 'replace'
        {"tools":{"mode":"all"}} => @.tools.mode: Input should be 'default', 'default_plus_client', 'client_only' or 'explicit'
        {"tools":{"disabled_capabilities":["ocr","flight"]}} => @.tools.disabled_capabilities.1: Input should be 'ocr', 'vision', 'embeddings', 'web_search' or 'browser'
        {"runtime":{"coordinate_methods":["guess"]}} => @.runtime.coordinate_methods.0: Input should be 'manual', 'ocr' or 'prediction'
        "#,
    );
    for word in ["default", "default_plus_overrides", "custom"] {
        check(&json!({ "mode": word }), "");
    }
}

#[test]
fn every_text_has_its_limit() {
    for (place, longest) in [
        ("id", 128),
        ("name", 128),
        ("system_prompt.content", 400_000),
        ("runtime.operating_system", 64),
        ("runtime.workspace_path", 4096),
    ] {
        let definition = |length: usize| {
            let text = json!("é".repeat(length));
            place.rsplit('.').fold(text, |inner, name| json!({ name: inner }))
        };
        check(&definition(longest), "");
        let wrong = format!("@.{place}: String should have at most {longest} characters");
        check(&definition(longest + 1), &wrong);
    }
    let layer = |length: usize| {
        let content = "é".repeat(length);
        json!({ "skills": [{ "id": "a", "type": "b", "content": content }] })
    };
    check(&layer(200_000), "");
    check(&layer(200_001), "@.skills.0.content: String should have at most 200000 characters");
}

#[test]
fn layers_have_names_of_some_characters_and_bounded_priorities() {
    let layer =
        |id: &str, kind: &str| json!({ "skills": [{ "id": id, "type": kind, "content": "c" }] });
    check(&layer(&"a".repeat(128), &"B".repeat(64)), "");
    check(&layer("a.b:c_d-9", "z"), "");
    let pattern = "String should match pattern '^[a-zA-Z0-9_.:-]+$'";
    check(&layer("a b", "é"), &format!("@.skills.0.id: {pattern}; @.skills.0.type: {pattern}"));
    check(
        &layer(&"a".repeat(129), &"b".repeat(65)),
        "@.skills.0.id: String should have at most 128 characters; \
         @.skills.0.type: String should have at most 64 characters",
    );
    check(
        &json!({ "skills": [{}] }),
        "@.skills.0.id: Field required; @.skills.0.type: Field required; \
         @.skills.0.content: Field required",
    );
    let content = json!({ "skills": [{ "id": "a", "type": "b", "content": "" }] });
    check(&content, "@.skills.0.content: String should have at least 1 character");
    let priority = |priority: Value| json!({ "skills": [{ "id": "a", "type": "b", "content": "c", "priority": priority }] });
    check(&priority(json!(-1)), "@.skills.0.priority: Input should be greater than or equal to 0");
    check(
        &priority(json!(1001)),
        "@.skills.0.priority: Input should be less than or equal to 1000",
    );
    check(&priority(json!("1")), "@.skills.0.priority: Input should be a valid integer");
    check(&priority(json!(1000)), "");
    let usual = Definition::read(&layer("a", "b")).unwrap();
    assert_eq!(usual.layers[0].priority, 100);
}

#[test]
fn a_plugin_has_a_name_of_its_own() {
    check(&json!({ "plugins": [{}] }), "@.plugins.0.id: Field required");
    let plugin = json!({ "id": "p", "name": "P", "version": "1.2", "metadata": { "a": [] } });
    check(&json!({ "plugins": [plugin] }), "");
    let metadata = json!({ "plugins": [{ "id": "p", "metadata": 1 }] });
    check(&metadata, "@.plugins.0.metadata: Input should be a valid dictionary");
}
