//! The table that is printed.

use std::fmt::Write as _;

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    what: String,
    against: Option<f64>,
    quintet: Option<f64>,
    aim: String,
    load: String,
    note: String,
}

impl Row {
    /// An empty line.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// The figure of the bare proxy.
    pub(crate) fn proxy(self, value: f64) -> Self {
        self.against(value)
    }

    /// The figure that Quintet's is divided by; the row's name or note explains it.
    pub(crate) fn against(self, value: f64) -> Self {
        Self { against: Some(value), ..self }
    }

    /// The figure of Quintet.
    pub(crate) fn quintet(self, value: f64) -> Self {
        Self { quintet: Some(value), ..self }
    }

    /// The target.
    pub(crate) fn aim(self, aim: &str) -> Self {
        Self { aim: aim.into(), ..self }
    }

    /// An additional note.
    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// The load of the machine.
    pub(crate) fn load(self, load: &str) -> Self {
        Self { load: load.into(), ..self }
    }

    fn cells(&self) -> [String; 7] {
        let ratio = match (self.against, self.quintet) {
            (Some(other), Some(quintet)) if other > 0.0 => format!("{:.2}x", quintet / other),
            _ => "-".into(),
        };
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), figure);
        [
            self.what.clone(),
            number(self.against),
            number(self.quintet),
            ratio,
            self.aim.clone(),
            self.load.clone(),
            self.note.clone(),
        ]
    }
}

/// Formats a number with three significant digits.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0..1.0 => format!("{value:.3}"),
        1.0..10.0 => format!("{value:.2}"),
        10.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Formats all lines in columns.
pub(crate) fn render(rows: &[Row]) -> String {
    let heads = ["what", "against", "quintet", "ratio", "aim", "load", ""].map(String::from);
    let cells: Vec<[String; 7]> =
        std::iter::once(heads).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut out = String::new();
    for row in &cells {
        let [what, against, quintet, ratio, aim, load, note] = row;
        let [a, b, c, d, e, f, _] = widths;
        let line = format!(
            "{what:a$}  {against:>b$}  {quintet:>c$}  {ratio:>d$}  {aim:e$}  {load:>f$}  {note}"
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
