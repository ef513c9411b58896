//! The table that is printed.

use std::fmt::Write as _;

/// One line of the table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    what: String,
    proxy: Option<f64>,
    quintet: Option<f64>,
    aim: String,
    note: String,
}

impl Row {
    /// A line with nothing in it yet.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), ..Self::default() }
    }

    /// What the proxy needs.
    pub(crate) fn proxy(self, value: f64) -> Self {
        Self { proxy: Some(value), ..self }
    }

    /// What Quintet needs.
    pub(crate) fn quintet(self, value: f64) -> Self {
        Self { quintet: Some(value), ..self }
    }

    /// What it should be.
    pub(crate) fn aim(self, aim: &str) -> Self {
        Self { aim: aim.into(), ..self }
    }

    /// What else there is to know.
    pub(crate) fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    fn cells(&self) -> [String; 6] {
        let ratio = match (self.proxy, self.quintet) {
            (Some(proxy), Some(quintet)) if proxy > 0.0 => format!("{:.2}x", quintet / proxy),
            _ => "-".into(),
        };
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), figure);
        [
            self.what.clone(),
            number(self.proxy),
            number(self.quintet),
            ratio,
            self.aim.clone(),
            self.note.clone(),
        ]
    }
}

/// Three digits that count.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0..1.0 => format!("{value:.3}"),
        1.0..10.0 => format!("{value:.2}"),
        10.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// All lines, in columns.
pub(crate) fn render(rows: &[Row]) -> String {
    let heads = ["what", "proxy", "quintet", "ratio", "aim", ""].map(String::from);
    let cells: Vec<[String; 6]> =
        std::iter::once(heads).chain(rows.iter().map(Row::cells)).collect();
    let width = |column: usize| {
        cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for row in &cells {
        let [what, proxy, quintet, ratio, aim, note] = row;
        let [a, b, c, d, e, _] = widths;
        let line = format!("{what:a$}  {proxy:>b$}  {quintet:>c$}  {ratio:>d$}  {aim:e$}  {note}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
