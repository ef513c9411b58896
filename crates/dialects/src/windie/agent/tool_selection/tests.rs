//! Which tools an agent has in every mode, and their time limits.

use serde_json::{Value, json};

use super::*;

struct Case {
    definition: Value,
    manifest: Vec<&'static str>,
    settings: Settings,
    abilities: Abilities,
}

fn of(tools: Value) -> Case {
    let abilities = Abilities { web_search: Ok(()), ..Abilities::default() };
    Case {
        definition: json!({ "tools": tools }),
        manifest: vec!["save_note", "read_file"],
        settings: Settings::default(),
        abilities,
    }
}

impl Case {
    fn offered<T>(&self, then: impl Fn(ToolSelection<'_>) -> T) -> T {
        let definition = Definition::read(&self.definition).unwrap();
        let tool = |name: &&str| json!({ "name": name, "description": "mine", "schema": {} });
        let tools: Vec<Value> = self.manifest.iter().map(tool).collect();
        let manifest = Manifest::validate(&json!({ "tools": tools }));
        then(ToolSelection {
            definition: &definition,
            manifest: &manifest,
            settings: &self.settings,
            abilities: &self.abilities,
        })
    }

    fn toolset(&self) -> Toolset {
        self.offered(|offer| offer.toolset(false))
    }

    /// The names of the tools: the client's, then the daemon's behind a bar.
    fn names(&self) -> String {
        let toolset = self.toolset();
        assert_eq!(toolset.validation_error(), None);
        let client: Vec<&str> = toolset.client.iter().map(|tool| tool.name.as_str()).collect();
        format!("{} | {}", client.join(" "), toolset.daemon.unwrap().join(" "))
    }
}

const ALL: &str = "mouse_control scroll_control keyboard_control screenshot wait get_open_windows \
get_system_stats switch_window open_app run_shell_command process read_file replace";

#[test]
fn usually_there_is_the_catalogue_and_what_the_client_brings() {
    let brought = ALL.replace("read_file ", "");
    assert_eq!(of(json!({})).names(), format!("{brought} save_note read_file | web_search"));
    let case = of(json!({}));
    assert_eq!(case.toolset().client_tool("read_file").unwrap().description, "mine");
    assert_eq!(case.toolset().timeout_ms, Some(120_000));
    assert_eq!(case.toolset().spans[0].tool, "run_shell_command");
}

#[test]
fn only_built_in_tools_are_known_to_do_nothing_but_look() {
    let repeatable = |case: &Case, name: &str| case.toolset().client_tool(name).unwrap().repeatable;
    let brought = of(json!({}));
    assert!(repeatable(&brought, "screenshot") && !repeatable(&brought, "mouse_control"));
    assert!(!repeatable(&brought, "read_file"), "this one is the client's own");
    assert!(repeatable(&of(json!({ "mode": "default" })), "read_file"));
}

#[test]
fn the_usual_tools_alone() {
    let case = of(json!({ "mode": "default" }));
    assert_eq!(case.names(), format!("{ALL} | web_search"));
    assert_ne!(case.toolset().client_tool("read_file").unwrap().description, "mine");
}

#[test]
fn what_the_client_names_narrows_the_usual_tools() {
    let tools = json!({ "available_tools": ["mouse_control", "save_note", "unheard_of"] });
    assert_eq!(of(tools).names(), "mouse_control save_note | ");
    let tools =
        json!({ "mode": "default", "available_tools": ["wait", "web_search", "save_note"] });
    assert_eq!(of(tools).names(), "wait | web_search");
    assert_eq!(
        of(json!({ "mode": "default", "enabled_remote_tools": [] })).names(),
        format!("{ALL} | ")
    );
}

#[test]
fn the_clients_tools_alone() {
    assert_eq!(of(json!({ "mode": "client_only" })).names(), "save_note read_file | ");
    let tools = json!({ "mode": "client_only", "enabled_remote_tools": ["web_search"], "available_tools": ["wait"] });
    assert_eq!(of(tools).names(), "save_note read_file | web_search");
}

#[test]
fn the_tools_that_the_client_names() {
    assert_eq!(of(json!({ "mode": "explicit" })).names(), "save_note read_file | ");
    let named = json!({ "mode": "explicit", "available_tools": ["wait", "web_search"] });
    assert_eq!(of(named).names(), "wait save_note read_file | web_search");
    let remote = json!({ "mode": "explicit", "enabled_remote_tools": ["web_search"] });
    assert_eq!(of(remote).names(), "save_note read_file | web_search");
}

#[test]
fn tools_and_capabilities_can_be_switched_off() {
    let tools = json!({
        "mode": "explicit",
        "available_tools": ["mouse_control", "keyboard_control", "browser", "web_search"],
        "disabled_tools": ["keyboard_control", "save_note"],
        "disabled_capabilities": ["web_search", "browser"],
    });
    let mut case = of(tools);
    case.settings.browser_automation_enabled = true;
    assert_eq!(case.names(), "mouse_control read_file | ");
}

#[test]
fn the_browser_is_for_users_who_switched_it_on() {
    let mut case = of(json!({ "mode": "explicit", "available_tools": ["browser"] }));
    case.manifest.clear();
    assert_eq!(case.names(), " | ");
    case.settings.browser_automation_enabled = true;
    assert_eq!(case.names(), "browser | ");
}

#[test]
fn who_only_chats_has_a_list_of_tools() {
    let mut case = of(json!({}));
    case.settings.interaction_mode = Interaction::Chat;
    case.settings.browser_automation_enabled = true;
    let brought = ALL.replace("read_file ", "");
    assert_eq!(case.names(), format!("{brought} read_file | web_search"));
}

#[test]
fn a_search_that_there_is_not_is_told_of() {
    let told = |case: &Case| case.offered(|offer| offer.remote_tools())["remote_tools"][0].clone();
    let mut case = of(json!({}));
    let there = told(&case);
    assert_eq!(there["name"], "web_search");
    assert_eq!((&there["enabled"], &there["available"]), (&json!(true), &json!(true)));
    assert_eq!(there["reason_unavailable"], json!(null));
    case.abilities = Abilities::default();
    let gone = told(&case);
    assert_eq!((&gone["enabled"], &gone["available"]), (&json!(false), &json!(false)));
    assert_eq!(gone["reason_unavailable"], "web search is not configured");
    assert!(case.names().ends_with("| "));
    let off = told(&of(json!({ "disabled_tools": ["web_search"] })));
    assert_eq!((&off["enabled"], &off["available"]), (&json!(false), &json!(true)));
}

#[test]
fn places_are_found_only_as_they_can_be() {
    let mouse = |case: &Case| {
        let tool = case.toolset().client_tool("mouse_control").unwrap().clone();
        let properties = &tool.schema["properties"];
        let has = |name: &str| properties.get(name).is_some();
        let words = properties["find_coordinates_by"]["enum"].clone();
        (words, has("ocr_text") && has("drag_to_candidate_id"), has("source_description"))
    };
    let mut case = of(json!({}));
    assert_eq!(mouse(&case), (json!(["manual"]), false, false));
    case.abilities = Abilities { ocr: true, vision: true, ..Abilities::default() };
    assert_eq!(mouse(&case), (json!(["manual", "ocr", "prediction"]), true, true));
    case.definition = json!({ "tools": { "disabled_capabilities": ["vision"] } });
    assert_eq!(mouse(&case), (json!(["manual", "ocr"]), true, false));
    case.definition = json!({ "runtime": { "coordinate_methods": ["prediction"] } });
    assert_eq!(mouse(&case), (json!(["prediction"]), false, true));
    case.abilities.vision = false;
    assert_eq!(mouse(&case), (json!(["manual"]), false, false));
}

#[track_caller]
fn check_timeout(calls: &[(&str, Value)], seconds: f64) {
    let timeout_ms = u64::try_from(DEFAULT_TIMEOUT.as_millis()).ok();
    let tools = Toolset { timeout_ms, spans: vec![command_timeout()], ..Toolset::default() };
    let has = tools.timeout(calls.iter().map(|(tool, input)| (*tool, input)));
    assert_eq!(has, Some(Duration::from_secs_f64(seconds)), "{calls:?}");
}

#[test]
fn a_call_has_two_minutes() {
    check_timeout(&[("mouse_control", json!({ "terminate_after_seconds": 500 }))], 120.0);
    check_timeout(&[("run_shell_command", json!({ "run_in_background": true }))], 120.0);
}

#[test]
fn a_command_that_is_waited_for_has_as_long_as_it_says() {
    let run = |input| [("run_shell_command", input)];
    check_timeout(&run(json!({ "run_in_background": false })), 135.0);
    check_timeout(&run(json!({ "terminate_after_seconds": 10, "wait": 2.5 })), 27.5);
    check_timeout(&run(json!({ "terminate_after_seconds": 1e6 })), 900.0);
    check_timeout(&run(json!("no object")), 135.0);
}

#[test]
fn a_bundle_has_the_sum_of_its_commands_within_bounds() {
    let click = ("mouse_control", json!({}));
    let run = ("run_shell_command", json!({ "terminate_after_seconds": 300 }));
    check_timeout(&[click.clone(), click.clone()], 120.0);
    check_timeout(&[click.clone(), run.clone(), click], 315.0);
    check_timeout(&[run.clone(), run.clone()], 630.0);
    check_timeout(&[run.clone(), run.clone(), run], 900.0);
}
