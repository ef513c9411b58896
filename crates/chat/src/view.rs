//! Draws the screen.
//!
//! Wrapped and coloured lines are cached until they change, so that drawing a long conversation
//! costs no more than a short one.

mod approval;
mod code;
mod entries;
mod footer;
mod grammars;
mod lists;
mod markdown;
mod palette;
mod wrap;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;
use ratatui::widgets::Clear;

use crate::Colours;
use crate::model::{Model, Pane, Transcript};
use palette::Palette;

/// Draws the screen; caches the lines of entries.
#[derive(Debug)]
pub(crate) struct View {
    palette: Palette,
    width: u16,
    /// Lines of each entry, with the revision that they show.
    laid_out: Vec<(u64, Vec<Line<'static>>)>,
}

impl View {
    pub(crate) fn new(colours: Colours) -> Self {
        Self { palette: Palette(colours), width: 0, laid_out: Vec::new() }
    }

    /// Draws the screen. Positions that depend on the layout, such as the scroll limit, are corrected in the
    /// model.
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, model: &mut Model) {
        let area = frame.area();
        if area.is_empty() {
            return;
        }
        let footer = footer::height(model, area);
        let body = Rect { height: area.height - footer, ..area };
        let footer = Rect { y: area.y + body.height, height: footer, ..area };
        if !body.is_empty() {
            self.body(frame, model, body);
        }
        // Drawn last, because it shows search results from the other parts.
        footer::draw(frame, model, footer, self.palette);
    }

    fn body(&mut self, frame: &mut Frame<'_>, model: &mut Model, body: Rect) {
        self.lay_out(&model.transcript, body.width);
        self.transcript(frame, model, body);
        let offered = model.offered_commands();
        match &mut model.pane {
            _ if !model.chat.approvals.is_empty() => {
                approval::draw(frame, &mut model.chat.approvals, body, self.palette);
            }
            Pane::Chat => lists::commands(frame, &offered, body, self.palette),
            Pane::Search(_) => {}
            Pane::Help => lists::help(frame, body, self.palette),
            Pane::Sessions(sessions) => lists::sessions(frame, sessions, body, self.palette),
        }
    }

    fn lay_out(&mut self, transcript: &Transcript, width: u16) {
        if self.width != width {
            self.width = width;
            self.laid_out.clear();
        }
        let entries = transcript.entries();
        self.laid_out.truncate(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            if self.laid_out.get(place).is_some_and(|(revision, _)| *revision == entry.revision) {
                continue;
            }
            let before = place.checked_sub(1).map(|place| &entries[place].kind);
            let rows = entries::rows(&entry.kind, before, usize::from(width));
            let lines = rows.into_iter().map(|row| self.palette.line(row)).collect();
            match self.laid_out.get_mut(place) {
                Some(known) => *known = (entry.revision, lines),
                None => self.laid_out.push((entry.revision, lines)),
            }
        }
    }

    fn transcript(&self, frame: &mut Frame<'_>, model: &mut Model, area: Rect) {
        let height = usize::from(area.height);
        let total: usize = self.laid_out.iter().map(|(_, lines)| lines.len()).sum();
        let found = self.search(model, total, height);
        model.scroll = model.scroll.min(total.saturating_sub(height));
        let first = total.saturating_sub(height + model.scroll);
        let shown = self.lines().skip(first).take(height);
        for (y, (line, at)) in (area.y..).zip(shown.zip(first..)) {
            let row = Rect { y, height: 1, ..area };
            if Some(at) == found {
                frame.render_widget(line.clone().patch_style(Modifier::REVERSED), row)
            } else {
                frame.render_widget(line, row)
            }
        }
    }

    /// The line of the current search match, scrolled to.
    fn search(&self, model: &mut Model, total: usize, height: usize) -> Option<usize> {
        let Pane::Search(search) = &mut model.pane else { return None };
        let wanted = search.editor.text().to_lowercase();
        let holds = |line: &Line<'_>| line.to_string().to_lowercase().contains(&wanted);
        let places: Vec<usize> = if wanted.is_empty() {
            Vec::new()
        } else {
            self.lines().enumerate().filter(|(_, line)| holds(line)).map(|(at, _)| at).collect()
        };
        search.found = places.len();
        search.nth = search.nth.min(places.len().saturating_sub(1));
        let at = *places.iter().rev().nth(search.nth)?;
        let below = total - at - 1;
        let visible = model.scroll..model.scroll + height;
        if !visible.contains(&below) {
            model.scroll = below.saturating_sub(height / 2);
        }
        Some(at)
    }

    fn lines(&self) -> impl Iterator<Item = &Line<'static>> {
        self.laid_out.iter().flat_map(|(_, lines)| lines)
    }
}

/// Clears an area and draws as many lines as fit.
fn fill<'a>(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'a>>) {
    frame.render_widget(Clear, area);
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

#[cfg(test)]
mod tests;
