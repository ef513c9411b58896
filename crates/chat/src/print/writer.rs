//! Writes an answer without a screen.

use serde_json::Value;

use super::Output;
use crate::Error;
use crate::notice::{Block, Kind};

/// How the answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The answer's text, as it is.
    #[default]
    Text,
    /// The text for a terminal: nothing in it moves the cursor or changes a colour.
    Plain,
    /// Everything that happens, a line of JSON each.
    Json,
}

/// An answer as it is printed.
pub(super) struct AnswerWriter<'a> {
    form: Form,
    output: Output<'a>,
    printed: String,
    /// Something else happened since the last word.
    paused: bool,
}

impl<'a> AnswerWriter<'a> {
    pub(super) fn new(form: Form, output: Output<'a>) -> Self {
        Self { form, output, printed: String::new(), paused: false }
    }

    /// Something happened.
    pub(super) fn event(&mut self, message: &Value) -> Result<(), Error> {
        match self.form {
            Form::Json => self.write(&format!("{message}\n")),
            Form::Text | Form::Plain => Ok(()),
        }
    }

    /// The answer goes on.
    pub(super) fn token(&mut self, text: &str) -> Result<(), Error> {
        if self.form == Form::Json || text.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.paused) {
            self.new_line()?;
        }
        self.printed.push_str(text);
        match self.form {
            Form::Plain => {
                let plain = |c: &char| matches!(c, '\n' | '\t') || !c.is_control();
                self.write(&text.chars().filter(plain).collect::<String>())
            }
            Form::Text | Form::Json => self.write(text),
        }
    }

    /// A block is whole; if its words did not come one by one, they are printed now.
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

    /// Says something beside the answer.
    pub(super) fn remark(&mut self, text: &str) -> Result<(), Error> {
        let text: String = text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
        writeln!(self.output.remarks, "quintet: {text}").map_err(Error::Output)
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
