//! The styles of text. Colours are the terminal's own sixteen, so that they match its theme.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::Colours;

/// The role of a piece of text, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextRole {
    Plain,
    Dim,
    Strong,
    /// A message of the user.
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
    /// The status line.
    Bar,
    Chosen,
}

/// A piece of text with one role.
pub(super) type Run = (TextRole, String);
/// A line.
pub(super) type Row = Vec<Run>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Palette(pub(super) Colours);

impl Palette {
    pub(super) fn line(self, row: Row) -> Line<'static> {
        let span = |(role, text): Run| Span::styled(text, self.style(role));
        Line::from(row.into_iter().map(span).collect::<Vec<_>>())
    }

    pub(super) fn style(self, role: TextRole) -> Style {
        let style = Style::new().add_modifier(weight(role));
        match self.0 {
            Colours::On => colour(role).map_or(style, |colour| style.fg(colour)),
            Colours::Off => style,
        }
    }
}

fn weight(role: TextRole) -> Modifier {
    match role {
        TextRole::Strong
        | TextRole::Person
        | TextRole::Heading
        | TextRole::Keyword
        | TextRole::Trouble => Modifier::BOLD,
        TextRole::Dim | TextRole::Comment => Modifier::DIM,
        TextRole::Bar | TextRole::Chosen => Modifier::REVERSED,
        TextRole::Plain
        | TextRole::Inline
        | TextRole::Type
        | TextRole::Name
        | TextRole::Text
        | TextRole::Number
        | TextRole::Added
        | TextRole::Removed
        | TextRole::Hunk
        | TextRole::Good
        | TextRole::Caution => Modifier::empty(),
    }
}

fn colour(role: TextRole) -> Option<Color> {
    match role {
        TextRole::Plain
        | TextRole::Dim
        | TextRole::Strong
        | TextRole::Bar
        | TextRole::Chosen
        | TextRole::Comment => None,
        TextRole::Person | TextRole::Hunk | TextRole::Type => Some(Color::Cyan),
        TextRole::Heading | TextRole::Keyword => Some(Color::Magenta),
        TextRole::Name => Some(Color::Blue),
        TextRole::Text | TextRole::Added | TextRole::Good => Some(Color::Green),
        TextRole::Number | TextRole::Inline | TextRole::Caution => Some(Color::Yellow),
        TextRole::Removed | TextRole::Trouble => Some(Color::Red),
    }
}
