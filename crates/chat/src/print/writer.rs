//! Writes an answer without a screen.

use serde_json::Value;

use super::Output;
use crate::Error;
use crate::notice::{Block, Kind};

/// The output format of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// The unchanged text of the answer.
    #[default]
    Text,
    /// Text for a terminal: without control sequences.
    Plain,
    /// Every notification as a line of JSON.
    Json,
}

/// Prints an answer while it streams.
pub(super) struct AnswerWriter<'a> {
    format: OutputFormat,
    output: Output<'a>,
    printed: String,
    /// True if other output was printed since the last token.
    paused: bool,
}

impl<'a> AnswerWriter<'a> {
    pub(super) fn new(format: OutputFormat, output: Output<'a>) -> Self {
        Self { format, output, printed: String::new(), paused: false }
    }

    /// Prints a notification in the JSON format.
    pub(super) fn event(&mut self, message: &Value) -> Result<(), Error> {
        match self.format {
            OutputFormat::Json => self.write(&format!("{message}\n")),
            OutputFormat::Text | OutputFormat::Plain => Ok(()),
        }
    }

    /// Prints a token.
    pub(super) fn token(&mut self, text: &str) -> Result<(), Error> {
        if self.format == OutputFormat::Json || text.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.paused) {
            self.new_line()?;
        }
        self.printed.push_str(text);
        match self.format {
            OutputFormat::Plain => {
                let plain = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
                self.write(&text.chars().filter(plain).collect::<String>())
            }
            OutputFormat::Text | OutputFormat::Json => self.write(text),
        }
    }

    /// Prints a block whose text was not streamed as tokens.
    pub(super) fn block(&mut self, block: &Block) -> Result<(), Error> {
        match block.kind {
            Kind::Text | Kind::Code | Kind::Diff => {
                if self.printed.contains(block.content.trim()) {
                    return Ok(());
                }
                self.paused = true;
                self.token(&block.content)
            }
            Kind::Error | Kind::ToolOutput | Kind::Interactive => {
                self.pause();
                Ok(())
            }
        }
    }

    pub(super) fn pause(&mut self) {
        self.paused = true;
    }

    /// Prints a notice.
    pub(super) fn note(&mut self, text: &str) -> Result<(), Error> {
        let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        writeln!(self.output.messages, "quintet: {text}").map_err(Error::Output)
    }

    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.new_line()
    }

    fn new_line(&mut self) -> Result<(), Error> {
        if self.printed.is_empty() || self.printed.ends_with('\n') {
            return Ok(());
        }
        self.printed.push('\n');
        self.write("\n")
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let output = &mut self.output.answer;
        output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Error::Output)
    }
}
