//! Prompts: the session's transcript as models read it.

mod assistant_parts;
mod cache;
mod conversation;
mod digest;
mod history;
mod review;
mod shorten;
mod summary_facts;
mod token_estimate;

use std::sync::Arc;

use crate::context;
use crate::event::ToolUse;
use crate::model::{Account, ModelRef, Prompt, PromptMessage, Sampling};
use crate::session::State;
use crate::tool::ToolSpec;
use crate::web_search;

pub use cache::PromptCache;
use conversation::{Messages, conversation, user_text};
pub(crate) use digest::digest;

pub use assistant_parts::assistant_parts;
pub(crate) use history::{History, HistoryEntry, history, history_since};
pub use review::{parse_review, review_prompt};
pub(crate) use shorten::Shorten;
pub(crate) use summary_facts::parse_summary;
pub use token_estimate::{PromptTokens, count_prompt_tokens};
pub(crate) use token_estimate::{estimate_entry_tokens, estimate_tokens};

/// The prompt for the open step of a session.
pub fn assemble(state: &State) -> Prompt {
    assemble_next(state, &mut PromptCache::default())
}

/// The prompt for the open step, reusing messages of the last prompt.
pub fn assemble_next(state: &State, cache: &mut PromptCache) -> Prompt {
    let open = state.open.as_ref();
    let model = open.and_then(|open| open.step()).map_or(state.current_model(), |step| &step.model);
    let may_call = open.is_none_or(|open| open.options.tools == ToolUse::Offered);
    let messages = conversation(state, &history(state), Shorten::of(state), cache);
    // Providers reject a history with calls if the request lists no tools.
    let named = may_call || messages.iter().any(|one| is_result(one));
    Prompt {
        tools: if named { tools(state, model) } else { Vec::new() },
        may_call,
        search: web_search::provider_search(state, model),
        model: model.clone(),
        system: system_prompt(state),
        messages,
        sampling: open.map(|open| open.options.sampling.clone()).unwrap_or_default(),
        account: account(state),
    }
}

/// The account that pays for the open turn, or paid for the last one.
fn account(state: &State) -> Option<Account> {
    let options = state.open.as_ref().map(|open| &open.options);
    let last = || state.turns.last_started().map(|turn| &turn.options);
    options.or_else(last)?.account().cloned()
}

/// The prompt that asks for a summary of the older history. If it exceeds the context window,
/// results are shortened and then the oldest steps left out.
pub fn summary_prompt(state: &State) -> Prompt {
    let mut history = history(state);
    if let Some(end) = state.compaction.pending.as_ref().and_then(|upto| history.upto(upto)) {
        history.recent.truncate(end);
    }
    let question = if state.rules.save_memory {
        format!("{ASK_FOR_SUMMARY} {}", summary_facts::ASK_FOR_FACTS)
    } else {
        ASK_FOR_SUMMARY.into()
    };
    let room = state.window() / 5 * 4;
    let mut cache = PromptCache::default();
    let mut asked = |shorten| {
        let mut messages = conversation(state, &history, shorten, &mut cache);
        messages.push(user_text(question.clone()).into());
        side_prompt(state, messages)
    };
    let shorten = Shorten::of(state);
    let mut prompt = asked(shorten);
    if estimate_tokens(&prompt) > room {
        prompt = asked(shorten.with_all_old());
    }
    let over = estimate_tokens(&prompt).saturating_sub(room);
    if over > 0 {
        let head = History { recent: Vec::new(), ..history };
        let head = conversation(state, &head, shorten, &mut PromptCache::default()).len();
        drop_oldest(&mut prompt.messages, head, over);
    }
    prompt
}

/// Leaves out this many tokens of messages after the first `head` ones, and never a result without
/// its call. The last message is the question and stays.
fn drop_oldest(messages: &mut Messages, head: usize, tokens: u64) {
    let mut rest = messages.split_off(head);
    let question = rest.pop();
    let (mut gone, mut end) = (0_u64, 0);
    while end < rest.len() && (gone < tokens || is_result(&rest[end])) {
        gone = gone.saturating_add(token_estimate::estimate_message_tokens(&rest[end]));
        end += 1;
    }
    messages.push(user_text(format!("[{end} earlier messages left out]")).into());
    messages.extend(rest.drain(end..));
    messages.extend(question);
}

fn is_result(message: &PromptMessage) -> bool {
    match message {
        PromptMessage::Result { .. } => true,
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Assistant { .. } => {
            false
        }
    }
}

/// A prompt outside the conversation, answered with text.
fn side_prompt(state: &State, messages: Messages) -> Prompt {
    let model: ModelRef = state.current_model().clone();
    Prompt {
        tools: tools(state, &model),
        may_call: false,
        search: web_search::provider_search(state, &model),
        model,
        system: system_prompt(state),
        messages,
        sampling: Sampling::default(),
        account: account(state),
    }
}

fn tools(state: &State, model: &ModelRef) -> Vec<Arc<ToolSpec>> {
    if state.profile(model).is_some_and(|profile| profile.tools) {
        state.tools()
    } else {
        Vec::new()
    }
}

const ASK_FOR_SUMMARY: &str = "Summarize this conversation for yourself, because you will go on with \
only the summary. Keep, in the user's own words where they matter: what the user wants and any \
standing instructions, decisions and why they were taken, files and commands that matter, what is \
done and verified, what is still open. Write the summary only.";

/// The system prompt of a session, exactly as models read it.
pub fn system_prompt(state: &State) -> String {
    let workspace = format!("The workspace is {}.", state.workspace.display());
    let given = state.instructions.iter().map(|at| state.messages[*at].text());
    let parts = state.system_prompt.iter().cloned().chain(given);
    let context = if state.context.base.is_empty() {
        String::new()
    } else {
        context::format_base(&state.context.base)
    };
    parts
        .chain([workspace, context])
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
mod tests;
