//! A map as text, within its bounds.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;

use super::choose::Choice;
use super::{MapStyle, Ranked};
use crate::{show, tokens};

/// Room for the note that something was left out.
const NOTE_CHARACTERS: usize = 48;

/// The map of what matters most.
pub(super) fn text(files: &[PathBuf], choice: &Choice, form: &MapStyle) -> String {
    let shown = fitting(files, choice, form);
    let mut text = String::new();
    for (file, symbols) in by_file(&choice.ranked[..shown]) {
        let _infallible = writeln!(text, "{}:", show::path(&files[file]));
        for ranked in symbols {
            text += &line(ranked, form);
        }
    }
    let left_out = choice.ranked.len() - shown + choice.unseen;
    let about = if choice.unseen > 0 { "about " } else { "" };
    if left_out > 0 {
        let symbols = show::count(left_out, "more symbol");
        let _infallible = writeln!(text, "[{about}{symbols} left out]");
    }
    text
}

/// How many of the weightiest symbols there is room for.
fn fitting(files: &[PathBuf], choice: &Choice, form: &MapStyle) -> usize {
    let mut room = tokens::bytes(form.max_tokens).saturating_sub(NOTE_CHARACTERS);
    let mut begun = HashSet::new();
    let fits = |ranked: &&Ranked| {
        let mut cost = line(ranked, form).len();
        if begun.insert(ranked.file) {
            cost += show::path(&files[ranked.file]).len() + ":\n".len();
        }
        room.checked_sub(cost).inspect(|left| room = *left).is_some()
    };
    choice.ranked.iter().take(form.max_symbols).take_while(fits).count()
}

fn line(ranked: &Ranked, form: &MapStyle) -> String {
    let symbol = ranked.symbol();
    let (kind, name) = (symbol.kind, &symbol.text);
    if form.lines {
        format!("  - {kind} {name} (line {})\n", symbol.line)
    } else {
        format!("  - {kind} {name}\n")
    }
}

/// The files in which these are, the weightiest first, each with its symbols in order.
fn by_file(shown: &[Ranked]) -> Vec<(usize, Vec<&Ranked>)> {
    let mut files: HashMap<usize, (f64, Vec<&Ranked>)> = HashMap::new();
    for ranked in shown {
        let (weight, symbols) = files.entry(ranked.file).or_default();
        *weight += ranked.weight;
        symbols.push(ranked);
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|(a, (x, _)), (b, (y, _))| y.total_cmp(x).then(a.cmp(b)));
    let sorted = |mut symbols: Vec<_>| {
        symbols.sort_by_key(|ranked: &&Ranked| ranked.place);
        symbols
    };
    files.into_iter().map(|(file, (_, symbols))| (file, sorted(symbols))).collect()
}
