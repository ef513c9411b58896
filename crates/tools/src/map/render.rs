//! A map as text, within its bounds.

use std::collections::HashSet;
use std::fmt::Write;

use super::rank::{Ranked, by_file};
use super::{Form, Map};
use crate::{show, tokens};

/// Room for the note that something was left out.
const NOTE: usize = 48;

/// The map of what matters most.
pub(super) fn text(map: &Map, form: Form) -> String {
    let shown = fitting(map, form);
    let mut text = String::new();
    for (file, symbols) in by_file(&map.ranked[..shown]) {
        let _infallible = writeln!(text, "{}:", show::path(&map.files[file]));
        for symbol in symbols {
            text += &line(map, file, symbol, form);
        }
    }
    let left_out = map.ranked.len() - shown;
    if left_out > 0 {
        let _infallible = writeln!(text, "[{} left out]", show::count(left_out, "more symbol"));
    }
    text
}

/// How many of the weightiest symbols there is room for.
fn fitting(map: &Map, form: Form) -> usize {
    let mut room = tokens::bytes(form.max_tokens).saturating_sub(NOTE);
    let mut files = HashSet::new();
    let fits = |ranked: &&Ranked| {
        let mut cost = line(map, ranked.file, ranked.symbol, form).len();
        if files.insert(ranked.file) {
            cost += show::path(&map.files[ranked.file]).len() + ":\n".len();
        }
        room.checked_sub(cost).inspect(|left| room = *left).is_some()
    };
    map.ranked.iter().take(form.max_symbols).take_while(fits).count()
}

fn line(map: &Map, file: usize, symbol: usize, form: Form) -> String {
    let symbol = &map.outlines[file].symbols[symbol];
    let (kind, name) = (symbol.kind, &symbol.text);
    if form.lines {
        format!("  - {kind} {name} (line {})\n", symbol.line)
    } else {
        format!("  - {kind} {name}\n")
    }
}
