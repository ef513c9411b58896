//! Tests one turn of 500 steps whose output is 20 times the model's context window.

use std::collections::HashMap;
use std::sync::Arc;

use quintet_kernel::command::{NewMessage, TurnStart};
use quintet_kernel::event::{Event, NewSession, TurnOptions};
use quintet_kernel::id::{BlobId, GeneratedId};
use quintet_kernel::message::{CallArtifact, MediaKind, Part, Role};
use quintet_kernel::model::{
    AssistantPart, Channel, Failure, FailureKind, FinishReason, ModelRef, ModelResponse, Profile,
    Prompt, PromptMessage, PromptPart, RawToolCall, SearchSupport, Usage,
};
use quintet_kernel::policy::Rules;
use quintet_kernel::port::ModelProfiles;
use quintet_kernel::prompt::{assemble, count_prompt_tokens, summary_prompt};
use quintet_kernel::session::{TurnStatus, next};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Command, Effect, State, StepId};

use crate::world::{World, check_pairs, rules};

const WINDOW: u64 = 10_000;
const STEPS: u32 = 500;
/// Bytes of one result: all results together are 20 times the window, at four bytes per token.
const RESULT: usize = 20 * WINDOW as usize * 4 / STEPS as usize;
const REQUEST: &str = "Port the whole code base, and keep the comments as they are: every one.";
const INSTRUCTIONS: &str = "Never touch the folder `legal`.";

/// How provider and tools behave in a test.
#[derive(Clone, Copy, Debug, Default)]
struct Scenario {
    /// True if the provider counts tokens.
    counts: bool,
    /// True if summaries cannot be written.
    no_summaries: bool,
    /// True if results are pictures.
    pictures: bool,
    /// True if the provider accepts less than its profile states.
    overflows: bool,
    /// True if other turns precede this one.
    earlier_turns: bool,
    /// The content of a step.
    step: Step,
}

/// The content of a step, in bytes.
#[derive(Clone, Copy, Debug)]
struct Step {
    calls: usize,
    arguments: usize,
    thought: usize,
    /// Each result.
    result: usize,
}

impl Default for Step {
    fn default() -> Self {
        Self { calls: 1, arguments: 0, thought: 0, result: RESULT }
    }
}

fn profiles() -> HashMap<String, Profile> {
    let (inputs, search) = (vec![MediaKind::Image], SearchSupport::default());
    let profile = Profile { inputs, tools: true, context_window: Some(WINDOW), search };
    HashMap::from([("fake".to_owned(), profile)])
}

/// Estimates all token counts.
#[derive(Debug)]
struct EstimatedTokens;

impl ModelProfiles for EstimatedTokens {
    fn profile(&self, model: &ModelRef) -> Option<Profile> {
        profiles().remove(&model.provider)
    }
}

fn long_rules() -> Rules {
    let mut rules = rules();
    rules.default_model = ModelRef::parse("fake/a").unwrap();
    rules.limits.steps = u32::MAX;
    rules.limits.tokens = u64::MAX;
    rules.verify.auto = false;
    rules
}

fn begin(scenario: Scenario) -> World {
    let mut world = World::new(long_rules());
    world.profiles = profiles();
    world.send(Command::Create(NewSession {
        workspace: "/work".into(),
        system_prompt: Some(INSTRUCTIONS.into()),
        model: None,
        labels: [].into(),
        toolset: None,
    }));
    if scenario.earlier_turns {
        for n in 0..8 {
            world.send(say(&format!("question {n} {}", "x".repeat(RESULT))));
            run_effects(&mut world, scenario, (100, 0));
        }
    }
    world.send(say(REQUEST));
    world
}

fn say(text: &str) -> Command {
    let (role, parts) = (Role::User, vec![Part::Text(text.into())]);
    Command::AddMessage(Box::new(NewMessage::new(
        role,
        parts,
        TurnStart::Now,
        TurnOptions::default(),
    )))
}

/// Executes the session's effects, for at most `rounds` rounds; the model finishes after `steps`
/// steps.
fn run_effects(world: &mut World, scenario: Scenario, (rounds, steps): (usize, u32)) {
    for _ in 0..rounds {
        match next_effect(world) {
            None => return,
            Some(Effect::CallModel(_)) => {
                let done = world.state.open.as_ref().unwrap().steps > steps;
                answer(world, scenario, done);
            }
            Some(Effect::RunCall(call)) => {
                let outcome = outcome(scenario);
                world.send(Command::CallFinished { call, outcome });
            }
            Some(Effect::Summarize(upto)) => {
                let prompt = summary_prompt(&world.state);
                check_pairs(&prompt);
                assert!(prompt.system.starts_with(INSTRUCTIONS), "{}", prompt.system);
                assert!(guess(&prompt) <= WINDOW, "a summary of {} tokens", guess(&prompt));
                world.send(if scenario.no_summaries {
                    Command::SummaryFailed { reason: "no".into() }
                } else {
                    let summary = format!("we are at it {}", "s".repeat(800));
                    Command::SummaryWritten { upto, summary, usage: Usage::default() }
                });
            }
            Some(effect) => panic!("{effect:?}"),
        }
    }
}

fn answer(world: &mut World, scenario: Scenario, done: bool) {
    let step: StepId = world.state.open.as_ref().unwrap().step().unwrap().id.clone();
    let tokens = count_prompt_tokens(&world.state, &EstimatedTokens).total().tokens;
    assert!(tokens <= WINDOW, "a step reads {tokens} tokens");
    check_prompt(&world.state, &assemble(&world.state));
    if scenario.overflows && tokens > WINDOW / 2 {
        let failure = Failure { kind: FailureKind::ContextOverflow, message: "too long".into() };
        return world.send(Command::ModelFailed { step, failure });
    }
    let Step { calls, arguments, thought, .. } = scenario.step;
    let written = 20 + (calls * arguments + thought) as u64 / 4;
    let output = if scenario.counts { written } else { 0 };
    let input = if scenario.counts { tokens } else { 0 };
    let usage = Usage { input, output, ..Usage::default() };
    think(world, &step, scenario.step.thought);
    let calls = if done { 0 } else { scenario.step.calls };
    let calls: Vec<RawToolCall> = (0..calls).map(|n| call(world, n, scenario)).collect();
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    world.send(Command::ModelCompleted { step, answer: ModelResponse::new(finish, calls, usage) });
}

fn think(world: &mut World, step: &StepId, bytes: usize) {
    if bytes > 0 {
        let (step, channel, text) = (step.clone(), Channel::Thought, "t".repeat(bytes));
        world.send(Command::ModelOutput { step, offset: 0, channel, text, pieces: Vec::new() });
    }
}

fn call(world: &World, n: usize, scenario: Scenario) -> RawToolCall {
    let padding = "a".repeat(scenario.step.arguments);
    let arguments = format!("{{\"n\":[{},{n}],\"a\":\"{padding}\"}}", world.journal.len());
    RawToolCall { id: String::new(), tool: "look".into(), arguments }
}

fn outcome(scenario: Scenario) -> Outcome {
    let mut outcome = Outcome::success("r".repeat(scenario.step.result));
    if scenario.pictures {
        let (name, mime) = (String::from("shot.png"), String::from("image/png"));
        outcome.parts.push(Part::Media { kind: MediaKind::Image, name: name.clone(), mime: None });
        outcome.artifacts.push(CallArtifact {
            name,
            mime,
            blob: BlobId::named("b10b".into()),
            size: 3,
        });
    }
    outcome
}

/// Checks what holds for every prompt of the turn.
fn check_prompt(state: &State, prompt: &Prompt) {
    check_pairs(prompt);
    assert!(prompt.system.starts_with(INSTRUCTIONS), "{}", prompt.system);
    let asked = state.turns.last().unwrap();
    let request = &state.messages.iter().find(|message| message.id == asked.message).unwrap().parts;
    let [Part::Text(request)] = &request[..] else { panic!("{request:?}") };
    let verbatim = prompt.messages.iter().filter(|message| match &***message {
        PromptMessage::User(parts) => parts[..] == [PromptPart::Text(request.clone())],
        PromptMessage::System(_)
        | PromptMessage::Assistant { .. }
        | PromptMessage::Result { .. } => false,
    });
    assert_eq!(verbatim.count(), 1, "the user's last message, unchanged");
}

fn guess(prompt: &Prompt) -> u64 {
    let part = |part: &PromptPart| match part {
        PromptPart::Text(text) => text.len() as u64 / 4,
        PromptPart::Media { .. } => 1_000,
    };
    let part_length = |part_length: &AssistantPart| match part_length {
        AssistantPart::Text(text) | AssistantPart::Thought(text) => text.len() as u64 / 4,
        AssistantPart::Sealed(content) => content.to_string().len() as u64 / 4,
        AssistantPart::Call(call) => call.input.to_string().len() as u64 / 4,
    };
    let messages = prompt.messages.iter().map(|message| match &**message {
        PromptMessage::System(text) => text.len() as u64 / 4,
        PromptMessage::User(parts) => parts.iter().map(part).sum(),
        PromptMessage::Assistant { parts, .. } => parts.iter().map(part_length).sum(),
        PromptMessage::Result { text, media, .. } => {
            text.len() as u64 / 4 + media.iter().map(part).sum::<u64>()
        }
    });
    messages.sum::<u64>() + prompt.system.len() as u64 / 4
}

fn count(world: &World, matches: impl Fn(&Event) -> bool) -> usize {
    world.journal.iter().filter(|record| matches(&record.event)).count()
}

#[track_caller]
fn check(scenario: Scenario) -> World {
    let mut world = begin(scenario);
    run_effects(&mut world, scenario, (10 * STEPS as usize, STEPS));
    let turn = world.state.turns.last().unwrap();
    assert_eq!(turn.status, TurnStatus::Succeeded, "{scenario:?}: {:?}", turn.error);
    assert!(count(&world, |event| matches!(event, Event::StepStarted { .. })) > STEPS as usize);
    let summaries = count(&world, |event| matches!(event, Event::Compacted { .. }));
    assert!((1..STEPS as usize / 4).contains(&summaries), "{scenario:?}: {summaries} summaries");
    world.check_journal();
    world
}

#[test]
fn a_turn_continues_however_much_it_reads() {
    for counts in [false, true] {
        for pictures in [false, true] {
            check(Scenario { counts, pictures, ..Scenario::default() });
        }
    }
    check(Scenario { earlier_turns: true, counts: true, ..Scenario::default() });
}

#[test]
fn a_turn_continues_whatever_its_steps_contain() {
    let usual = Step::default();
    let few = Step { result: RESULT / 4, ..usual };
    let steps = [
        Step { arguments: 1_600, ..usual },
        Step { arguments: 1_600, result: 10, ..usual },
        Step { thought: 1_600, result: 10, ..usual },
        Step { calls: 4, ..few },
        Step { calls: 4, arguments: 200, thought: 400, ..few },
    ];
    for step in steps {
        for counts in [false, true] {
            check(Scenario { counts, step, ..Scenario::default() });
            check(Scenario { counts, step, no_summaries: true, ..Scenario::default() });
        }
    }
}

/// The results of one step get at most half of the window, however many and long they are.
#[test]
fn the_results_of_one_step_fit() {
    for calls in [2, 20, 128] {
        let step = Step { calls, result: 10 * WINDOW as usize, ..Step::default() };
        let scenario = Scenario { step, ..Scenario::default() };
        let mut world = begin(scenario);
        run_effects(&mut world, scenario, (20 * calls, 5));
        assert_eq!(world.state.turns.last().unwrap().status, TurnStatus::Succeeded);
    }
}

#[test]
fn a_turn_continues_after_a_result_that_is_too_long() {
    let step = Step { result: 10 * WINDOW as usize, ..Step::default() };
    let scenario = Scenario { step, overflows: true, ..Scenario::default() };
    let mut world = begin(scenario);
    run_effects(&mut world, scenario, (200, 5));
    let turn = world.state.turns.last().unwrap();
    assert_eq!(turn.status, TurnStatus::Succeeded, "{:?}", turn.error);
}

#[test]
fn a_turn_continues_without_summaries() {
    for counts in [false, true] {
        check(Scenario { counts, no_summaries: true, ..Scenario::default() });
    }
}

#[test]
fn a_turn_continues_if_the_provider_accepts_less_than_stated() {
    check(Scenario { overflows: true, ..Scenario::default() });
    check(Scenario { overflows: true, no_summaries: true, ..Scenario::default() });
}

#[test]
fn a_prompt_that_never_fits_is_not_summarized_at_every_step() {
    let mut world = begin(Scenario::default());
    let system_prompt = Some(format!("{INSTRUCTIONS} {}", "x".repeat(5 * WINDOW as usize)));
    world.send(Command::SetSystemPrompt { system_prompt });
    for _ in 0..40 {
        while let Some(Effect::Summarize(upto)) = next_effect(&world) {
            let (summary, usage) = ("at it".into(), Usage::default());
            world.send(Command::SummaryWritten { upto, summary, usage });
        }
        let step = world.state.open.as_ref().unwrap().step().unwrap().id.clone();
        let arguments = format!("{{\"n\":{}}}", world.journal.len());
        let call = RawToolCall { id: String::new(), tool: "look".into(), arguments };
        let answer = ModelResponse::new(FinishReason::ToolCalls, vec![call], Usage::default());
        world.send(Command::ModelCompleted { step, answer });
        let Some(Effect::RunCall(call)) = next_effect(&world) else { panic!("a call runs") };
        world.send(Command::CallFinished { call, outcome: outcome(Scenario::default()) });
    }
    let summaries = count(&world, |event| matches!(event, Event::Compacted { .. }));
    assert!(summaries <= 15, "{summaries} summaries in 40 steps");
}

fn next_effect(world: &World) -> Option<Effect> {
    next(&world.state).into_iter().find(|effect| !matches!(effect, Effect::WakeAt(_)))
}

#[test]
fn a_long_turn_can_be_recovered_anywhere() {
    for no_summaries in [false, true] {
        let scenario = Scenario { no_summaries, ..Scenario::default() };
        let world = check(scenario);
        let mut state = State::new(world.state.id.clone(), Arc::new(long_rules()));
        for (n, record) in world.journal.iter().enumerate() {
            state.replay([&**record]);
            let is_begun = state.open.is_some();
            if is_begun && n % 97 == 0 {
                let mut crashed = world.crashed(&state, n + 1);
                crashed.send(Command::Recover { interrupted: Vec::new() });
                run_effects(&mut crashed, scenario, (40, STEPS));
                crashed.check_journal();
            }
        }
    }
}
