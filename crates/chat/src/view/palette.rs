//! What things look like. Colours are the terminal's own sixteen, so that they fit its theme.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::Colours;

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Dim,
    Strong,
    /// What the person said.
    Person,
    Heading,
    /// Code within a sentence.
    Inline,
    Keyword,
    Type,
    Name,
    Text,
    Number,
    Comment,
    Added,
    Removed,
    Hunk,
    Good,
    Caution,
    Trouble,
    /// The line that says how things are.
    Bar,
    Chosen,
}

/// A piece of text that looks the same all through.
pub(super) type Run = (Ink, String);
/// A line.
pub(super) type Row = Vec<Run>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Palette(pub(super) Colours);

impl Palette {
    pub(super) fn line(self, row: Row) -> Line<'static> {
        let span = |(ink, text): Run| Span::styled(text, self.style(ink));
        Line::from(row.into_iter().map(span).collect::<Vec<_>>())
    }

    pub(super) fn style(self, ink: Ink) -> Style {
        let style = Style::new().add_modifier(weight(ink));
        match self.0 {
            Colours::On => colour(ink).map_or(style, |colour| style.fg(colour)),
            Colours::Off => style,
        }
    }
}

fn weight(ink: Ink) -> Modifier {
    match ink {
        Ink::Strong | Ink::Person | Ink::Heading | Ink::Keyword | Ink::Trouble => Modifier::BOLD,
        Ink::Dim | Ink::Comment => Modifier::DIM,
        Ink::Bar | Ink::Chosen => Modifier::REVERSED,
        Ink::Plain
        | Ink::Inline
        | Ink::Type
        | Ink::Name
        | Ink::Text
        | Ink::Number
        | Ink::Added
        | Ink::Removed
        | Ink::Hunk
        | Ink::Good
        | Ink::Caution => Modifier::empty(),
    }
}

fn colour(ink: Ink) -> Option<Color> {
    match ink {
        Ink::Plain | Ink::Dim | Ink::Strong | Ink::Bar | Ink::Chosen | Ink::Comment => None,
        Ink::Person | Ink::Hunk | Ink::Type => Some(Color::Cyan),
        Ink::Heading | Ink::Keyword => Some(Color::Magenta),
        Ink::Name => Some(Color::Blue),
        Ink::Text | Ink::Added | Ink::Good => Some(Color::Green),
        Ink::Number | Ink::Inline | Ink::Caution => Some(Color::Yellow),
        Ink::Removed | Ink::Trouble => Some(Color::Red),
    }
}
