//! Tests that sealed data and pictures of tools are sent back in the next prompt.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::command::{NewMessage, TurnStart};
use quintet_kernel::event::{NewSession, TurnOptions};
use quintet_kernel::id::BlobId;
use quintet_kernel::message::{CallArtifact, MediaKind, Part, Role};
use quintet_kernel::model::{
    AssistantPart, Channel, FinishReason, ModelRef, ModelResponse, Profile, PromptMessage,
    PromptPart, RawToolCall, SealPosition, Sealed, SearchSupport, Usage,
};
use quintet_kernel::policy::Rules;
use quintet_kernel::session::{Phase, handle};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, Command, SessionId, Stamp, State, StepId, Time, prompt};
use serde_json::json;

use crate::world;

fn profiles() -> HashMap<String, Profile> {
    let (inputs, search) = (vec![MediaKind::Image], SearchSupport::default());
    let profile = Profile { inputs, tools: true, context_window: None, search };
    HashMap::from([("fake".to_owned(), profile)])
}

fn session() -> State {
    let default_model = ModelRef::parse("fake/a").unwrap();
    let rules = Rules { default_model, ..world::rules() };
    State::new(SessionId::parse("s1").unwrap(), Arc::new(rules))
}

fn step(state: &State) -> StepId {
    match &state.open.as_ref().unwrap().phase {
        Phase::Thinking(step) => step.id.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sealed_data_and_pictures_are_sent_back() {
    let mut state = session();
    let mut tick = 0;
    let mut tell = |state: &mut State, command: Command| {
        tick += 1;
        world::set_profiles(state, &command, &profiles());
        handle(state, command, &Stamp::new(Time::default(), [tick, 7])).unwrap();
    };
    let workspace = PathBuf::from("/work");
    let origin = NewSession { workspace, ..NewSession::default() };
    tell(&mut state, Command::Create(origin));
    let (role, parts) = (Role::User, vec![Part::Text("look".into())]);
    let say = NewMessage::new(role, parts, TurnStart::Now, TurnOptions::default());
    tell(&mut state, Command::AddMessage(Box::new(say)));
    let asked = step(&state);
    let output = |offset, channel, text: &str| Command::ModelOutput {
        step: asked.clone(),
        offset,
        channel,
        text: text.into(),
        pieces: Vec::new(),
    };
    tell(&mut state, output(0, Channel::Thought, "hm"));
    tell(&mut state, output(2, Channel::Text, "so"));
    let call = RawToolCall { id: "c1".into(), tool: "look".into(), arguments: "{}".into() };
    let seal = |place, word: &str| Sealed { place, content: json!(word) };
    let answer = ModelResponse {
        sealed: vec![seal(SealPosition::Output(2), "s1"), seal(SealPosition::Call(0), "s2")],
        by: ModelRef::parse("fake/b"),
        ..ModelResponse::new(FinishReason::ToolCalls, vec![call], Usage::default())
    };
    tell(&mut state, Command::ModelCompleted { step: asked.clone(), answer });
    let id = CallId::parse("c1").unwrap();
    let (name, mime) = (String::from("shot.png"), String::from("image/png"));
    let mut outcome = Outcome::success("taken");
    outcome.parts.push(Part::Media { kind: MediaKind::Image, name: name.clone(), mime: None });
    let blob = BlobId::parse("b10b").unwrap();
    outcome.artifacts.push(CallArtifact { name, mime, blob, size: 3 });
    tell(&mut state, Command::CallFinished { call: id, outcome });

    let prompt = prompt::assemble(&state);
    let PromptMessage::Assistant { by, parts } = &*prompt.messages[1] else { panic!("{prompt:?}") };
    assert_eq!(by.as_ref().map(ToString::to_string).as_deref(), Some("fake/b"));
    let [
        AssistantPart::Thought(_),
        AssistantPart::Sealed(first),
        AssistantPart::Text(_),
        AssistantPart::Sealed(second),
        AssistantPart::Call(_),
    ] = parts.as_slice()
    else {
        panic!("{parts:?}")
    };
    assert_eq!((first, second), (&json!("s1"), &json!("s2")));
    let PromptMessage::Result { text, media, ok: true, .. } = &*prompt.messages[2] else {
        panic!("{prompt:?}")
    };
    let [PromptPart::Media { name, mime, .. }] = media.as_slice() else { panic!("{media:?}") };
    assert_eq!((&**text, &**name, &**mime), ("taken", "shot.png", "image/png"));
}
