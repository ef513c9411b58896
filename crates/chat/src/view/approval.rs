//! Draws a call that waits for approval.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::code::{diff_line, tidy};
use super::fill;
use super::foot::text_rows;
use super::palette::{Ink, Palette};
use super::wrap::{cut, wrap};
use crate::model::OpenApproval;
use crate::notice::ApprovalRequest;

const KEYS: &str = " y yes  n/Esc no  a always this one  s always similar  ↑↓ scroll ";
const SHORT_KEYS: &str = " y n a s ";

pub(super) fn draw(
    frame: &mut Frame<'_>,
    approvals: &mut VecDeque<OpenApproval>,
    area: Rect,
    palette: Palette,
) {
    let others = approvals.len().saturating_sub(1);
    let Some(ask) = approvals.front_mut() else { return };
    let width = area.width;
    let mut lines = vec![title(&ask.asked, others, width, palette)];
    lines.extend(about(ask, width, palette));
    // What it is about may be long; there is always room for some of the preview and for the keys.
    let room = usize::from(area.height).saturating_sub(1);
    lines.truncate(room.saturating_sub(room / 2).max(1));
    let preview = preview(&ask.asked.preview, width, palette);
    let height = room.saturating_sub(lines.len());
    ask.scroll = ask.scroll.min(preview.len().saturating_sub(height));
    lines.extend(preview.into_iter().skip(ask.scroll).take(height));
    lines.resize(room, Line::default());
    lines.push(keys(ask, width, palette));
    fill(frame, area, lines);
}

fn title(asked: &ApprovalRequest, others: usize, width: u16, palette: Palette) -> Line<'static> {
    let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let text = format!(" {}{more}", asked.sentence());
    let text = format!("{:<1$}", cut(&text, usize::from(width)), usize::from(width));
    palette.line(vec![(Ink::Bar, text)])
}

fn about(ask: &OpenApproval, width: u16, palette: Palette) -> Vec<Line<'static>> {
    let asked = &ask.asked;
    let mut lines = text_rows(Ink::Strong, &asked.description, width, palette);
    for reason in &asked.reasons {
        lines.extend(text_rows(risk(&asked.risk), &format!("- {reason}"), width, palette));
    }
    let undone = match asked.reversible {
        Some(true) => "can be undone",
        Some(false) => "cannot be undone",
        None => "",
    };
    let until = ask.left().map(|left| format!("refused in {left} s")).unwrap_or_default();
    let both = [undone, until.as_str()].into_iter().filter(|text| !text.is_empty());
    let both = both.collect::<Vec<_>>().join("; ");
    lines.extend(text_rows(Ink::Dim, &both, width, palette));
    lines
}

fn risk(level: &str) -> Ink {
    match level {
        "low" => Ink::Good,
        "medium" => Ink::Caution,
        _ => Ink::Trouble,
    }
}

fn preview(text: &str, width: u16, palette: Palette) -> Vec<Line<'static>> {
    let is_diff = text.lines().any(|line| line.starts_with("@@ ") || line.starts_with("+++ "));
    let line = |line: &str| match is_diff {
        true => diff_line(line),
        false => vec![(Ink::Plain, tidy(line))],
    };
    let rows = text.lines().flat_map(|text| wrap(&line(text), usize::from(width), 0));
    rows.map(|row| palette.line(row)).collect()
}

fn keys(ask: &OpenApproval, width: u16, palette: Palette) -> Line<'static> {
    let keys = match usize::from(width) > KEYS.chars().count() {
        true => KEYS,
        false => SHORT_KEYS,
    };
    let ink = if ask.is_settled() { Ink::Bar } else { Ink::Dim };
    palette.line(vec![(ink, keys.to_owned())])
}
