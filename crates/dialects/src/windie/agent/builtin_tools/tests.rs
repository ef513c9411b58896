//! The catalogue against what clients know of it.

use std::collections::BTreeSet;

use super::*;
use crate::windie::wire::tool_manifest::Manifest;

/// Every tool with what it needs and what it may be given beside that.
const KNOWN: [(&str, &str, &str); 14] = [
    (
        "mouse_control",
        "action explanation",
        "button x y find_coordinates_by ocr_text candidate_id source_description model_name drag_to_x drag_to_y duration wait",
    ),
    (
        "scroll_control",
        "action explanation",
        "direction clicks x y find_coordinates_by ocr_text candidate_id wait",
    ),
    ("keyboard_control", "action explanation", "text key keys repeat interval_ms wait"),
    ("screenshot", "explanation", "display_bounds wait"),
    ("wait", "seconds explanation", ""),
    ("get_open_windows", "explanation", "filter_text"),
    ("get_system_stats", "explanation", ""),
    ("switch_window", "tab_name explanation", "match_mode wait"),
    (
        "open_app",
        "command explanation",
        "args directory verify verify_timeout_seconds verify_window_title",
    ),
    (
        "run_shell_command",
        "command run_in_background explanation",
        "directory env pty terminate_after_seconds wait yield_after_seconds",
    ),
    ("process", "action", "session_id data text keys hex literal offset limit eof bracketed"),
    ("read_file", "file_path explanation", "offset limit"),
    ("replace", "file_path explanation", "replacements patch_chunks match_mode"),
    ("browser", "action explanation", "index url text"),
];

#[test]
fn every_tool_takes_what_clients_know() {
    let names: Vec<&str> = tools().iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, KNOWN.map(|(name, ..)| name));
    for (name, needed, other) in KNOWN {
        let parameters = &tool(name).unwrap().parameters;
        let required: Vec<&str> = needed.split(' ').collect();
        assert_eq!(parameters["required"], json!(required), "{name}");
        for argument in needed.split(' ').chain(other.split_whitespace()) {
            assert!(parameters["properties"].get(argument).is_some(), "{name} has no {argument}");
        }
    }
}

#[test]
fn choices_are_those_that_clients_know() {
    let words = |name: &str, argument: &str| -> Vec<String> {
        let words = tool(name).unwrap().parameters["properties"][argument]["enum"].clone();
        words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let listed = |name, argument| words(name, argument).join(" ");
    assert_eq!(listed("mouse_control", "action"), "click double_click right_click move drag");
    assert_eq!(listed("mouse_control", "find_coordinates_by"), "manual ocr prediction");
    assert_eq!(listed("scroll_control", "action"), "scroll scroll_up scroll_down");
    assert_eq!(listed("keyboard_control", "action"), "type paste press hotkey");
    assert_eq!(listed("switch_window", "match_mode"), "exact contains regex");
    assert_eq!(listed("open_app", "verify"), "none window screenshot");
    assert_eq!(listed("replace", "match_mode"), "strict lenient");
    let process = "list poll log write send-keys submit paste kill clear remove";
    assert_eq!(listed("process", "action"), process);
    let browser: BTreeSet<String> = words("browser", "action").into_iter().collect();
    assert_eq!(browser.len(), 35);
    assert!(browser.contains("connect") && browser.contains("close"));
}

#[test]
fn every_tool_would_be_taken_from_a_client() {
    let entry = |tool: &BuiltIn| json!({ "name": tool.name, "description": tool.description, "schema": tool.parameters });
    let entries: Vec<Value> = tools().iter().map(entry).collect();
    let manifest = Manifest::validate(&json!({ "tools": entries }));
    assert_eq!(manifest.rejected, []);
}

#[test]
fn capabilities_are_known_of_every_tool_and_of_no_other() {
    let mouse = capabilities("mouse_control").unwrap();
    assert_eq!(mouse["argument_resolution"], "backend_grounding");
    assert_eq!(mouse["execution_target"], "local_runtime");
    assert_eq!(mouse["interaction_modes"], json!(["chat", "agent"]));
    assert_eq!(capabilities("browser").unwrap()["interaction_modes"], json!(["agent"]));
    assert_eq!(capabilities("web_search").unwrap()["execution_target"], "backend");
    assert!(tools().iter().all(|tool| capabilities(&tool.name).is_some()));
    assert_eq!(capabilities("shell"), None);
}

#[test]
fn a_function_is_shown_flat_or_nested() {
    let flat = tool("wait").unwrap().canonical();
    assert_eq!((&flat["type"], &flat["name"]), (&json!("function"), &json!("wait")));
    assert_eq!(flat["parameters"]["type"], "object");
}
