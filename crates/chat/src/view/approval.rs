//! Draws a call that waits for approval.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::code::{diff_line, tidy};
use super::fill;
use super::footer::text_rows;
use super::palette::{Palette, TextRole};
use super::wrap::{cut, wrap};
use crate::model::OpenApproval;
use crate::notice::{AnswerChoice, ApprovalRequest};

const KEYS: &str = " y yes  n/Esc no  a always this one  s always similar  ↑↓ scroll ";
const SHORT_KEYS: &str = " y n a s ";

pub(super) fn draw(
    frame: &mut Frame<'_>,
    approvals: &mut VecDeque<OpenApproval>,
    area: Rect,
    palette: Palette,
) {
    let others = approvals.len().saturating_sub(1);
    let Some(approval) = approvals.front_mut() else { return };
    let width = area.width;
    let mut lines = vec![title(&approval.request, others, width, palette)];
    lines.extend(about(approval, width, palette));
    // The description may be long; there is always room for a part of the preview and for the keys.
    let room = usize::from(area.height).saturating_sub(1);
    lines.truncate(room.saturating_sub(room / 2).max(1));
    let preview = preview(&approval.request.preview, width, palette);
    let height = room.saturating_sub(lines.len());
    approval.scroll = approval.scroll.min(preview.len().saturating_sub(height));
    lines.extend(preview.into_iter().skip(approval.scroll).take(height));
    lines.resize(room, Line::default());
    lines.push(keys(approval, width, palette));
    fill(frame, area, lines);
}

fn title(request: &ApprovalRequest, others: usize, width: u16, palette: Palette) -> Line<'static> {
    let more = if others == 0 { String::new() } else { format!(" (and {others} more)") };
    let text = format!(" {}{more}", request.sentence());
    let text = format!("{:<1$}", cut(&text, usize::from(width)), usize::from(width));
    palette.line(vec![(TextRole::Bar, text)])
}

fn about(approval: &OpenApproval, width: u16, palette: Palette) -> Vec<Line<'static>> {
    let request = &approval.request;
    let mut lines = text_rows(TextRole::Strong, &request.description, width, palette);
    for reason in &request.reasons {
        lines.extend(text_rows(risk(&request.risk), &format!("- {reason}"), width, palette));
    }
    let undone = match request.reversible {
        Some(true) => "can be undone",
        Some(false) => "cannot be undone",
        None => "",
    };
    let until = approval
        .seconds_left()
        .map(|seconds_left| format!("refused in {seconds_left} s"))
        .unwrap_or_default();
    let both = [undone, until.as_str()].into_iter().filter(|text| !text.is_empty());
    let both = both.collect::<Vec<_>>().join("; ");
    lines.extend(text_rows(TextRole::Dim, &both, width, palette));
    lines
}

fn risk(level: &str) -> TextRole {
    match level {
        "low" => TextRole::Good,
        "medium" => TextRole::Caution,
        _ => TextRole::Trouble,
    }
}

fn preview(text: &str, width: u16, palette: Palette) -> Vec<Line<'static>> {
    let is_diff = text.lines().any(|line| line.starts_with("@@ ") || line.starts_with("+++ "));
    let line =
        |line: &str| if is_diff { diff_line(line) } else { vec![(TextRole::Plain, tidy(line))] };
    let rows = text.lines().flat_map(|text| wrap(&line(text), usize::from(width), 0));
    rows.map(|row| palette.line(row)).collect()
}

fn keys(approval: &OpenApproval, width: u16, palette: Palette) -> Line<'static> {
    let keys = match &approval.request.choices {
        Some(choices) => cut(&choice_keys(choices), usize::from(width)),
        None if usize::from(width) > KEYS.chars().count() => KEYS.to_owned(),
        None => SHORT_KEYS.to_owned(),
    };
    let role = if approval.is_settled() { TextRole::Bar } else { TextRole::Dim };
    palette.line(vec![(role, keys)])
}

/// The keys that answer a question of a running call.
fn choice_keys(choices: &[AnswerChoice]) -> String {
    let keys = choices.iter().zip(1..10).map(|(choice, n)| format!(" {n} {} ", choice.label));
    let written = if choices.is_empty() { " answer it in the console " } else { "" };
    keys.collect::<String>() + written + " n/Esc decline  ↑↓ scroll "
}
