//! The footer: the status line and the input.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::fill;
use super::palette::{Palette, TextRole};
use super::wrap::{cut, wrap};
use crate::model::{Editor, Model, Pane};

/// Maximum number of shown rows of the input.
const INPUT_ROWS_LIMIT: usize = 6;
const SPINNER: [char; 4] = ['|', '/', '-', '\\'];

/// Rows of the footer; the rest of the screen keeps some if both fit.
pub(super) fn height(model: &Model, area: Rect) -> u16 {
    let typed = typed(&model.editor, area.width).0.len().clamp(1, INPUT_ROWS_LIMIT);
    let wanted = u16::try_from(typed).unwrap_or(1) + 1;
    wanted.min((area.height / 2).max(1)).min(area.height)
}

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, area: Rect, palette: Palette) {
    let bar = Rect { height: 1, ..area };
    let below = Rect { y: area.y + 1, height: area.height - 1, ..area };
    if below.is_empty() {
        return line(frame, model, area, palette);
    }
    fill(frame, bar, [status(model, area.width, palette)]);
    line(frame, model, below, palette);
}

fn line(frame: &mut Frame<'_>, model: &Model, area: Rect, palette: Palette) {
    match &model.pane {
        Pane::Search(search) => {
            let nth = if search.found == 0 { 0 } else { search.nth + 1 };
            let text = format!("search: {}", search.editor.text());
            let end = u16::try_from(text.width()).unwrap_or(u16::MAX);
            let text = format!("{text}   ({nth} of {})", search.found);
            fill(frame, area, [palette.line(vec![(TextRole::Caution, text)])]);
            frame.set_cursor_position(Position { x: area.x + end.min(area.width - 1), y: area.y });
        }
        Pane::Chat | Pane::Help | Pane::Sessions(_) => edit(frame, &model.editor, area, palette),
    }
}

fn edit(frame: &mut Frame<'_>, editor: &Editor, area: Rect, palette: Palette) {
    let (rows, (x, y)) = typed(editor, area.width);
    let first = (y + 1).saturating_sub(usize::from(area.height));
    let lines = rows.into_iter().skip(first).map(|row| palette.line(vec![(TextRole::Plain, row)]));
    fill(frame, area, lines);
    let at = |place: usize, most: u16| u16::try_from(place).unwrap_or(most).min(most);
    frame.set_cursor_position(Position {
        x: area.x + at(x, area.width - 1),
        y: area.y + at(y - first, area.height - 1),
    });
}

/// The input as rows, and the cursor's row and column.
fn typed(editor: &Editor, width: u16) -> (Vec<String>, (usize, usize)) {
    let width = usize::from(width).max(3);
    let marked = |text: &str| -> Vec<String> {
        let line = |line: &str| broken(line, width - 2);
        text.split('\n').flat_map(line).map(|row| format!("  {row}")).collect()
    };
    let mut rows = marked(editor.text());
    let before = marked(&editor.text()[..editor.cursor()]);
    if let Some(first) = rows.first_mut() {
        first.replace_range(..1, ">");
    }
    let x = before.last().map_or(2, |row| row.width());
    (rows, (x, before.len().saturating_sub(1)))
}

/// Breaks a line exactly at the width, so that typing does not move the text.
fn broken(line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut rest = line;
    while rest.width() > width {
        let row = match cut(rest, width) {
            row if row.is_empty() => break,
            row => row,
        };
        rest = &rest[row.len()..];
        rows.push(row);
    }
    rows.push(rest.to_owned());
    rows
}

fn status(model: &Model, width: u16, palette: Palette) -> Line<'static> {
    let width = usize::from(width);
    let (seconds_left, right) = (state(model), figures(model));
    let seconds_left = cut(&seconds_left, width);
    let space = width.saturating_sub(seconds_left.width() + right.width());
    let text = match space {
        0 => format!("{seconds_left}{}", " ".repeat(width.saturating_sub(seconds_left.width()))),
        space => format!("{seconds_left}{}{right}", " ".repeat(space)),
    };
    palette.line(vec![(TextRole::Bar, text)])
}

fn state(model: &Model) -> String {
    let chat = &model.chat;
    let spin = SPINNER[(model.ticks % 4) as usize];
    let waiting = match chat.waiting.len() {
        0 => String::new(),
        n => format!(", {n} waiting"),
    };
    match (&model.hint, &chat.running) {
        _ if !chat.online => format!(" {spin} reconnecting to the daemon"),
        (Some(hint), _) => format!(" {hint}"),
        (None, Some(running)) => format!(" {spin} {}{waiting}", running.doing),
        (None, None) => " ready, /help".to_owned(),
    }
}

fn figures(model: &Model) -> String {
    let name = model.chat.model.as_deref().unwrap_or_default();
    let above = if model.scroll > 0 { format!("{} below | ", model.scroll) } else { String::new() };
    format!("{above}{name} | {} tokens ", model.chat.tokens)
}

/// A text as rows in one style.
pub(super) fn text_rows(
    role: TextRole,
    text: &str,
    width: u16,
    palette: Palette,
) -> Vec<Line<'static>> {
    let line = |line: &str| wrap(&[(role, super::code::tidy(line))], usize::from(width), 2);
    text.lines().flat_map(line).map(|row| palette.line(row)).collect()
}
