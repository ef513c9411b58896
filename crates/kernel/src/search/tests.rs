//! Who searches, and why nobody does.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::model::Profile;
use crate::prompt::assemble;
use crate::session::tests::{Session, plain_rules};
use crate::tool::Risk;
use crate::toolset::ClientTool;

fn rules(search: Searches) -> Rules {
    let profile = Profile { inputs: Vec::new(), tools: true, context_window: None, search };
    let deaf = Profile { tools: false, ..profile.clone() };
    let models = HashMap::from([("fake".to_owned(), profile), ("deaf".to_owned(), deaf)]);
    Rules { models: Arc::new(models), ..plain_rules() }
}

fn model(text: &str) -> ModelRef {
    ModelRef::parse(text).unwrap()
}

fn own_tool() -> Arc<Spec> {
    Arc::new(Spec {
        name: WEB_SEARCH.into(),
        description: String::new(),
        schema: json!({}),
        kind: Kind::Network,
        placement: Placement::Daemon,
    })
}

#[track_caller]
fn check(rules: &Rules, toolset: &Toolset, name: &str, then: Result<Searcher, &str>) {
    let found = availability(rules, toolset, &model(name));
    assert_eq!(found.by, then.map_err(str::to_owned));
    assert_eq!((found.available(), found.reason()), (then.is_ok(), then.err()));
}

#[test]
fn a_tool_goes_before_the_provider() {
    let mut rules = rules(Searches::Beside);
    let all = Toolset::default();
    check(&rules, &all, "fake/a", Ok(Searcher::Provider));
    check(&rules, &all, "deaf/a", Ok(Searcher::Provider));
    rules.tools.push(own_tool());
    check(&rules, &all, "fake/a", Ok(Searcher::Tool));
    check(&rules, &all, "deaf/a", Err("deaf/a cannot call tools"));
    check(&rules, &all, "nobody/a", Err("there is no provider \"nobody\""));
}

#[test]
fn a_provider_that_does_not_search_says_why() {
    let (all, none) = (Toolset::default(), Toolset { daemon: Some(vec![]), ..Toolset::default() });
    let never = "no search API is set up, and fake/a has no search of its own";
    check(&rules(Searches::Never), &all, "fake/a", Err(never));
    let off = "no search API is set up, and search by providers is off";
    check(&rules(Searches::Off), &all, "fake/a", Err(off));
    let alone = "fake/a searches only where it is offered no tools";
    check(&rules(Searches::Alone), &all, "fake/a", Err(alone));
    check(&rules(Searches::Alone), &none, "fake/a", Ok(Searcher::Provider));
    check(&rules(Searches::Alone), &all, "deaf/a", Ok(Searcher::Provider));
}

#[test]
fn nothing_is_searched_that_a_person_should_be_asked_about() {
    let mut rules = rules(Searches::Beside);
    rules.approval.kinds.push(Kind::Network);
    let asks = "each search needs a person's word, which nobody would be asked for";
    check(&rules, &Toolset::default(), "fake/a", Err(asks));
    rules.approval.kinds.clear();
    rules.approval.tools.push(WEB_SEARCH.into());
    check(&rules, &Toolset::default(), "fake/a", Err(asks));
    // With a tool somebody is asked, unless the front end cannot.
    rules.tools.push(own_tool());
    check(&rules, &Toolset::default(), "fake/a", Ok(Searcher::Tool));
    let found = |rules: &Rules| without_asking(rules, &Toolset::default(), &model("fake/a"));
    assert_eq!(found(&rules).reason(), Some(asks));
    rules.approval.tools.clear();
    assert_eq!(found(&rules).by, Ok(Searcher::Tool));
}

/// What the first prompt of a session says, with these tools of the daemon.
fn prompted(rules: Rules, daemon: Option<&[&str]>, client: &[&str]) -> Search {
    let mut session = Session::after("create; say hi");
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    session.state.data.toolset = Toolset {
        daemon: daemon.map(named),
        client: client.iter().map(|name| brought(name)).collect(),
        ..Toolset::default()
    };
    session.state.rules = Arc::new(rules);
    assemble(&session.state).search
}

fn brought(name: &str) -> ClientTool {
    let (name, description, schema) = (name.into(), String::new(), json!({}));
    ClientTool { name, description, schema, risk: Risk::Low, repeatable: false }
}

#[test]
fn the_provider_searches_only_where_the_front_end_wants_it() {
    let native = || rules(Searches::Beside);
    assert_eq!(prompted(native(), None, &[]), Search::Native);
    assert_eq!(prompted(native(), Some(&["look", WEB_SEARCH]), &["click"]), Search::Native);
    assert_eq!(prompted(native(), Some(&["look"]), &[]), Search::Off);
    assert_eq!(prompted(native(), None, &[WEB_SEARCH]), Search::Off);
    assert_eq!(prompted(rules(Searches::Off), None, &[]), Search::Off);
    let mut both = native();
    both.tools.push(own_tool());
    assert_eq!(prompted(both, None, &[]), Search::Off);
}
