//! Tests of which component searches the web, and of the reasons why none does.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::command::Command;
use crate::model::Profile;
use crate::prompt::assemble;
use crate::session::tests::{Session, plain_rules};
use crate::tool::Risk;
use crate::toolset::ClientTool;

/// Rules, and the profiles of each provider's models.
struct World {
    rules: Rules,
    profiles: HashMap<String, Profile>,
}

fn world(search: SearchSupport) -> World {
    let profile = Profile { inputs: Vec::new(), tools: true, context_window: None, search };
    let deaf = Profile { tools: false, ..profile.clone() };
    let profiles = HashMap::from([("fake".to_owned(), profile), ("deaf".to_owned(), deaf)]);
    World { rules: plain_rules(), profiles }
}

fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

fn own_tool() -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: WEB_SEARCH.into(),
        description: String::new(),
        schema: json!({}),
        kind: ToolKind::Network,
        placement: Placement::Daemon,
        strict: false,
    })
}

#[track_caller]
fn check(world: &World, toolset: &Toolset, name: &str, then: Result<SearchBackend, &str>) {
    let model = model(name);
    let profile = world.profiles.get(&model.provider);
    let found = availability(&world.rules, toolset, (&model, profile));
    assert_eq!(found.by, then.map_err(str::to_owned));
    assert_eq!((found.available(), found.reason()), (then.is_ok(), then.err()));
}

#[test]
fn the_tool_is_preferred_to_the_provider() {
    let mut world = world(SearchSupport::WithTools);
    let all = Toolset::default();
    check(&world, &all, "fake/a", Ok(SearchBackend::Provider));
    check(&world, &all, "deaf/a", Ok(SearchBackend::Provider));
    world.rules.tools.push(own_tool());
    check(&world, &all, "fake/a", Ok(SearchBackend::Tool));
    check(&world, &all, "deaf/a", Err("deaf/a cannot call tools"));
    check(&world, &all, "nobody/a", Err("there is no provider \"nobody\""));
}

#[test]
fn the_reason_why_a_provider_cannot_search_is_reported() {
    let (all, none) = (Toolset::default(), Toolset { daemon: Some(vec![]), ..Toolset::default() });
    let never = "no search API is set up, and fake/a has no search of its own";
    check(&world(SearchSupport::Never), &all, "fake/a", Err(never));
    let off = "no search API is set up, and search by providers is off";
    check(&world(SearchSupport::Off), &all, "fake/a", Err(off));
    let alone = "fake/a searches only where it is offered no tools";
    check(&world(SearchSupport::WithoutTools), &all, "fake/a", Err(alone));
    check(&world(SearchSupport::WithoutTools), &none, "fake/a", Ok(SearchBackend::Provider));
    check(&world(SearchSupport::WithoutTools), &all, "deaf/a", Ok(SearchBackend::Provider));
}

#[test]
fn searches_that_need_approval_are_not_left_to_the_provider() {
    let mut world = world(SearchSupport::WithTools);
    world.rules.approval.kinds.push(ToolKind::Network);
    let asks = "each search needs approval, which the provider cannot wait for";
    check(&world, &Toolset::default(), "fake/a", Err(asks));
    world.rules.approval.kinds.clear();
    world.rules.approval.tools.push(WEB_SEARCH.into());
    check(&world, &Toolset::default(), "fake/a", Err(asks));
    // With a tool, a person is asked, unless the front end cannot ask.
    world.rules.tools.push(own_tool());
    check(&world, &Toolset::default(), "fake/a", Ok(SearchBackend::Tool));
    let found = |world: &World| {
        let (model, profile) = (model("fake/a"), world.profiles.get("fake"));
        availability_unattended(&world.rules, &Toolset::default(), (&model, profile))
    };
    assert_eq!(found(&world).reason(), Some(asks));
    world.rules.approval.tools.clear();
    assert_eq!(found(&world).by, Ok(SearchBackend::Tool));
}

/// The search setting in the first prompt of a session with these daemon tools.
fn search_in_prompt(world: World, daemon: Option<&[&str]>, client: &[&str]) -> WebSearch {
    let mut session = Session::after("create; say hi");
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    session.state.data.toolset = Toolset {
        daemon: daemon.map(named),
        client: client.iter().map(|name| client_tool(name)).collect(),
        ..Toolset::default()
    };
    session.state.rules = Arc::new(world.rules);
    session.profiles = world.profiles;
    session.set_profiles(&Command::Wake);
    assemble(&session.state).search
}

fn client_tool(name: &str) -> ClientTool {
    let (name, description, schema) = (name.into(), String::new(), json!({}));
    ClientTool {
        name,
        description,
        schema,
        risk: Risk::Low,
        repeatable: false,
        front_end: None,
        strict: false,
    }
}

#[test]
fn the_provider_searches_only_if_the_front_end_enables_it() {
    let native = || world(SearchSupport::WithTools);
    assert_eq!(search_in_prompt(native(), None, &[]), WebSearch::Native);
    assert_eq!(
        search_in_prompt(native(), Some(&["look", WEB_SEARCH]), &["click"]),
        WebSearch::Native
    );
    assert_eq!(search_in_prompt(native(), Some(&["look"]), &[]), WebSearch::Off);
    assert_eq!(search_in_prompt(native(), None, &[WEB_SEARCH]), WebSearch::Off);
    assert_eq!(search_in_prompt(world(SearchSupport::Off), None, &[]), WebSearch::Off);
    let mut both = native();
    both.rules.tools.push(own_tool());
    assert_eq!(search_in_prompt(both, None, &[]), WebSearch::Off);
}
