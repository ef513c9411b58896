//! The list of sessions, and the help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::fill;
use super::palette::{Ink, Palette};
use super::wrap::cut;
use crate::model::{HELP, Row, Sessions};

pub(super) fn help(frame: &mut Frame<'_>, area: Rect, palette: Palette) {
    let title = palette.line(vec![(Ink::Heading, "Keys and commands".into())]);
    let line = |(keys, what): (&str, &str)| {
        palette.line(vec![(Ink::Strong, format!(" {keys:<19}")), (Ink::Plain, what.to_owned())])
    };
    fill(frame, area, [title, Line::default()].into_iter().chain(HELP.into_iter().map(line)));
}

pub(super) fn sessions(frame: &mut Frame<'_>, sessions: &Sessions, area: Rect, palette: Palette) {
    let shown = sessions.shown();
    let room = usize::from(area.height).saturating_sub(2);
    let first = (sessions.chosen + 1).saturating_sub(room);
    let mut lines = vec![head(sessions, palette)];
    for (place, row) in shown.iter().enumerate().skip(first).take(room) {
        let ink = if place == sessions.chosen { Ink::Chosen } else { Ink::Plain };
        lines.push(palette.line(vec![(ink, text(row, usize::from(area.width)))]));
    }
    if shown.is_empty() {
        let none = if sessions.loaded { " no session" } else { " asking the daemon" };
        lines.push(palette.line(vec![(Ink::Dim, none.into())]));
    }
    lines.truncate(room + 1);
    lines.resize(room + 1, Line::default());
    lines.push(keys(sessions, &shown, palette));
    fill(frame, area, lines);
}

fn head(sessions: &Sessions, palette: Palette) -> Line<'static> {
    palette.line(vec![
        (Ink::Heading, "Sessions ".into()),
        (Ink::Dim, "find: ".into()),
        (Ink::Caution, format!("{}_", sessions.filter.text())),
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
            palette.line(vec![(Ink::Trouble, text)])
        }
        None => {
            let text = " Enter opens  Del deletes  Esc closes  type to find ";
            palette.line(vec![(Ink::Bar, text.into())])
        }
    }
}
