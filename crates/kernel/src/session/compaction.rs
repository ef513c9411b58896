//! Decides when a conversation is too long for its model, and how it is shortened.
//!
//! Old results and pictures are shortened first. Then a summary replaces the older part: whole
//! turns, or steps of the open turn, so that no call is separated from its result. Every summary ends
//! later than the previous one, so this terminates.

use crate::event::{Event, TurnCounts};
use crate::id::MessageId;
use crate::message::Role;
use crate::model::{TokenCount, Usage};
use crate::prompt::{
    History, HistoryEntry, Shorten, assemble, digest, estimate_entry_tokens, estimate_tokens,
    history, history_since,
};
use crate::session::state::State;

/// Turns that are kept unchanged, if there are at least twice as many.
const VERBATIM_TURNS: u64 = 3;
/// Steps of the open turn that are kept unchanged, if that shortens the prompt enough.
const VERBATIM_STEPS: usize = 3;
/// A new summary is made when at least 1/8 of the context window was filled since the last one.
const GROWTH_SHARE: u64 = 8;
/// If the results of a step have fewer bytes than this, they are not what makes a prompt too long.
const MIN_RESULT_BYTES: usize = 2_000;

/// How the conversation is shortened so that it fits the context window.
pub(super) enum Reduction {
    /// Results up to this message are shortened.
    Shorten { upto: MessageId },
    /// A model writes a summary up to this message.
    Summarize { upto: MessageId, tokens: u64 },
    /// No model could write a summary: a list of what was done replaces everything up to this message.
    Digest { upto: MessageId, tokens: u64 },
}

/// The reduction needed before the next step, if any.
pub(super) fn reduction(state: &State) -> Option<Reduction> {
    let compaction = &state.compaction;
    let (tokens, window) = (estimate_prompt_tokens(state), state.window());
    let limit = share(window, state.rules.limits.compact_at_percent);
    let grown = match compaction.floor {
        0 => true,
        floor => tokens >= floor.saturating_add(window / GROWTH_SHARE),
    };
    // If the prompt cannot be made short enough, it is not summarized again at every step.
    let worth = || compaction.floor >= limit && summarizable_tokens(state) >= window / GROWTH_SHARE;
    let again = || grown || compaction.failed || worth();
    let must = compaction.overflow || (tokens >= window && again());
    if !must && (tokens < limit || !grown) {
        return None;
    }
    let target = share(limit, 75);
    let history = history(state);
    let shorten = shortenable(state, &history);
    if let Some((upto, saved)) = &shorten
        && tokens.saturating_sub(*saved) <= target
        && !compaction.overflow
    {
        return Some(Reduction::Shorten { upto: upto.clone() });
    }
    let Some(upto) = smallest_range(state, &history, tokens, target) else {
        return shorten.map(|(upto, _)| Reduction::Shorten { upto });
    };
    Some(if must && compaction.failed {
        Reduction::Digest { upto, tokens }
    } else {
        Reduction::Summarize { upto, tokens }
    })
}

/// The estimated tokens of the next prompt: the provider's last count plus an estimate of what was
/// added since, or an estimate of everything.
pub(super) fn estimate_prompt_tokens(state: &State) -> u64 {
    match state.compaction.counted {
        None => estimate_tokens(&assemble(state)),
        Some(counted) => {
            let since: Vec<HistoryEntry<'_>> = history_since(state, counted).collect();
            state
                .compaction
                .tokens
                .saturating_add(sum(&estimate_entry_tokens(&since, Shorten::of(state))))
        }
    }
}

/// The last message before the open turn and the last few turns, if it is not summarized yet. A conversation
/// of few turns is summarized completely: they must be long, and keeping some would soon exceed the window
/// again.
pub(super) fn past_but_last_turns(state: &State) -> Option<MessageId> {
    let history = history(state);
    let past = messages_before_open_turn(state, &history);
    last_message(&history, older_than_last_turns(&history.recent[..past]))
}

/// The longest part of the conversation that a summary may replace now.
pub(super) fn largest_range(state: &State) -> Option<MessageId> {
    let history = history(state);
    last_message(&history, possible_ranges(state, &history).into_iter().max()?)
}

/// The shortest part of the conversation that a summary may replace to bring the tokens down to `target`, or
/// the longest possible part.
fn smallest_range(
    state: &State,
    history: &History<'_>,
    tokens: u64,
    target: u64,
) -> Option<MessageId> {
    let sizes = estimate_entry_tokens(&history.recent, Shorten::of(state));
    let all = sum(&sizes).max(1);
    let left = |end: usize| u128::from(tokens) * u128::from(sum(&sizes[end..])) / u128::from(all);
    let ranges = possible_ranges(state, history);
    let enough = ranges.iter().find(|end| left(**end) <= u128::from(target));
    last_message(history, *enough.or(ranges.last())?)
}

/// Estimated tokens of the longest part of the conversation that a summary may replace.
fn summarizable_tokens(state: &State) -> u64 {
    let history = history(state);
    let end = possible_ranges(state, &history).into_iter().max().unwrap_or(0);
    sum(&estimate_entry_tokens(&history.recent[..end], Shorten::of(state)))
}

/// The possible ends of a summary, as numbers of messages that it covers, in ascending order.
fn possible_ranges(state: &State, history: &History<'_>) -> Vec<usize> {
    let recent = &history.recent;
    let past = messages_before_open_turn(state, history);
    let is_answer = |n: &usize| recent[*n].message.role == Role::Assistant;
    let steps: Vec<usize> = (past..recent.len()).filter(is_answer).collect();
    // A step begins with the model's response. Before the first step, nothing of the turn can be
    // summarized.
    let but = |kept: usize| steps.len().checked_sub(kept).filter(|n| *n > 0).map(|n| steps[n]);
    let ends =
        [Some(older_than_last_turns(&recent[..past])), Some(past), but(VERBATIM_STEPS), but(1)];
    let mut ends: Vec<usize> = ends.into_iter().flatten().filter(|end| *end > 0).collect();
    ends.dedup();
    ends
}

/// Number of past messages that are older than the last few turns.
fn older_than_last_turns(past: &[HistoryEntry<'_>]) -> usize {
    let mut end = past.len();
    if History::turns(past) >= 2 * VERBATIM_TURNS {
        for _ in 0..VERBATIM_TURNS {
            let turn = &past[end - 1].message.turn;
            end -= past[..end].iter().rev().take_while(|entry| entry.message.turn == *turn).count();
        }
    }
    end
}

/// Number of messages of turns before the open one.
fn messages_before_open_turn(state: &State, history: &History<'_>) -> usize {
    let open = state.open.as_ref().map(|open| &open.id);
    let of_open = |entry: &&HistoryEntry<'_>| Some(&entry.message.turn) == open;
    history.recent.len() - history.recent.iter().rev().take_while(of_open).count()
}

fn last_message(history: &History<'_>, end: usize) -> Option<MessageId> {
    Some(history.recent[..end].last()?.message.id.clone())
}

/// The last message whose result may be shortened, and the tokens that this saves; `None` if all are short
/// already.
fn shortenable(state: &State, history: &History<'_>) -> Option<(MessageId, u64)> {
    let answers = history.recent.iter().enumerate().rev();
    let mut answers = answers.filter(|(_, entry)| entry.message.role == Role::Assistant);
    let (end, _) = answers.nth(VERBATIM_STEPS - 1)?;
    let old = history.recent[..end].iter().max_by_key(|entry| entry.at)?;
    let now = Shorten::of(state);
    let then = Shorten { before: old.at + 1, ..now };
    let tokens = |shorten| sum(&estimate_entry_tokens(&history.recent[..end], shorten));
    let saved = tokens(now).saturating_sub(tokens(then));
    (then.before > now.before && saved > 0).then(|| (old.message.id.clone(), saved))
}

/// The event that replaces the history up to a message by a summary, with the facts to save.
pub(super) fn compacted_event(
    state: &State,
    upto: MessageId,
    (summary, facts): (String, Vec<String>),
    usage: Usage,
) -> Event {
    let history = history(state);
    let (gone, kept) = history.recent.split_at(history.upto(&upto).unwrap_or(0));
    let turns = TurnCounts { before: History::turns(&history.recent), after: History::turns(kept) };
    let messages = state.position(&upto).map_or(0, |n| n + 1) as u64;
    // If no provider counted, the estimate at the time of the request.
    let tokens_before = match state.compaction.tokens {
        0 => state.compaction.floor,
        counted => counted,
    };
    let gone = sum(&estimate_entry_tokens(gone, Shorten::of(state)));
    let tokens_after =
        (tokens_before > 0).then(|| tokens_left(tokens_before, &history, gone, &summary));
    Event::Compacted { upto, summary, messages, tokens_before, tokens_after, usage, turns, facts }
}

/// The events that replace the history up to a message by a list of what was done.
pub(super) fn digest_events(state: &State, upto: MessageId, tokens: u64) -> Vec<Event> {
    let history = history(state);
    let text = digest(&history, history.upto(&upto).unwrap_or(0));
    let compacted = compacted_event(state, upto.clone(), (text, Vec::new()), Usage::default());
    vec![Event::CompactionRequested { upto, tokens, overflow: false }, compacted]
}

/// Estimated tokens of the prompt once a summary replaces `gone` tokens of the history.
fn tokens_left(tokens: u64, history: &History<'_>, gone: u64, summary: &str) -> u64 {
    let guess = |text: &str| TokenCount::guess(text).tokens;
    let earlier = history.summary.map_or(0, |earlier| guess(&earlier.text));
    // A provider may report any number.
    tokens.saturating_sub(gone).saturating_sub(earlier).saturating_add(guess(summary))
}

/// The window at which only half of the last step's results is shown; `None` if they are not what
/// makes the prompt too long.
pub(super) fn smaller_window(state: &State) -> Option<u64> {
    let (history, shorten) = (history(state), Shorten::of(state));
    let results = history.recent.iter().rev();
    let results: Vec<_> =
        results.take_while(|entry| entry.message.role == Role::Tool).copied().collect();
    let shown = |entry: &HistoryEntry<'_>| {
        entry.message.text().len().min(shorten.result_bytes(entry.at, results.len()))
    };
    let shown: usize = results.iter().map(shown).sum();
    (shown >= MIN_RESULT_BYTES).then(|| Shorten::window_of(shown / 2))
}

fn sum(tokens: &[u64]) -> u64 {
    tokens.iter().fold(0, |sum, tokens| sum.saturating_add(*tokens))
}

fn share(whole: u64, percent: u64) -> u64 {
    let share = u128::from(whole) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX)
}
