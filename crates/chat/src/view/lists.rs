//! The list of sessions, the list of commands and the help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::fill;
use super::palette::{Palette, TextRole};
use super::wrap::cut;
use crate::model::{COMMANDS, KEYS, Row, Sessions, SlashCommand};

pub(super) fn help(frame: &mut Frame<'_>, area: Rect, palette: Palette) {
    let title = palette.line(vec![(TextRole::Heading, "Keys and commands".into())]);
    let keys = KEYS.into_iter().map(|(keys, help)| help_line(keys, help, palette));
    let commands = COMMANDS.into_iter().map(|command| command_line(&command, palette));
    let gap = || [Line::default()];
    fill(frame, area, [title].into_iter().chain(gap()).chain(keys).chain(gap()).chain(commands));
}

/// The commands that match the input, above it.
pub(super) fn commands(
    frame: &mut Frame<'_>,
    offered: &[SlashCommand],
    area: Rect,
    palette: Palette,
) {
    let height = u16::try_from(offered.len()).unwrap_or(u16::MAX).min(area.height);
    let area = Rect { y: area.bottom() - height, height, ..area };
    fill(frame, area, offered.iter().map(|command| command_line(command, palette)));
}

fn command_line(command: &SlashCommand, palette: Palette) -> Line<'static> {
    let typed = format!("{}{}", command.name, command.arguments);
    help_line(&typed, &command.help, palette)
}

fn help_line(keys: &str, help: &str, palette: Palette) -> Line<'static> {
    palette
        .line(vec![(TextRole::Strong, format!(" {keys:<19}")), (TextRole::Plain, help.to_owned())])
}

pub(super) fn sessions(frame: &mut Frame<'_>, sessions: &Sessions, area: Rect, palette: Palette) {
    let shown = sessions.shown();
    let room = usize::from(area.height).saturating_sub(2);
    let first = (sessions.chosen + 1).saturating_sub(room);
    let mut lines = vec![head(sessions, palette)];
    for (place, row) in shown.iter().enumerate().skip(first).take(room) {
        let role = if place == sessions.chosen { TextRole::Chosen } else { TextRole::Plain };
        lines.push(palette.line(vec![(role, text(row, usize::from(area.width)))]));
    }
    if shown.is_empty() {
        let none = if sessions.loaded { " no session" } else { " loading" };
        lines.push(palette.line(vec![(TextRole::Dim, none.into())]));
    }
    lines.truncate(room + 1);
    lines.resize(room + 1, Line::default());
    lines.push(keys(sessions, &shown, palette));
    fill(frame, area, lines);
}

fn head(sessions: &Sessions, palette: Palette) -> Line<'static> {
    palette.line(vec![
        (TextRole::Heading, "Sessions ".into()),
        (TextRole::Dim, "find: ".into()),
        (TextRole::Caution, format!("{}_", sessions.filter.text())),
    ])
}

fn text(row: &Row, width: usize) -> String {
    let mark = if row.running { '*' } else { ' ' };
    let title = row.title.replace('\n', " ");
    let text = format!("{mark}{} {:>4}  {title}  {}", row.updated, row.messages, row.workspace);
    cut(&text, width)
}

fn keys(sessions: &Sessions, shown: &[&Row], palette: Palette) -> Line<'static> {
    match shown.get(sessions.chosen).filter(|_| sessions.deleting) {
        Some(row) => {
            let text = format!(" delete {:?} for good? y / n ", row.title);
            palette.line(vec![(TextRole::Trouble, text)])
        }
        None => {
            let text = " Enter opens  Del deletes  Esc closes  type to find ";
            palette.line(vec![(TextRole::Bar, text.into())])
        }
    }
}
