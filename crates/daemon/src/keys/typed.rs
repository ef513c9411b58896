//! Reads a key from the terminal without showing it, or from a pipe.

use std::io::{IsTerminal as _, Read as _, Stdin, Write as _};

use anyhow::{Context, Result, bail};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// Maximum length of a key, in bytes.
const KEY_BYTES_LIMIT: u64 = 16 << 10;

/// The bytes of Ctrl-C, Ctrl-D, Ctrl-H, Ctrl-U and Backspace.
const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: u8 = 8;
const ERASE: u8 = 21;
const DELETE: u8 = 127;

pub(super) fn read(prompt: &str) -> Result<String> {
    let stdin = std::io::stdin();
    let text = if stdin.is_terminal() { typed(&stdin, prompt)? } else { piped(&stdin)? };
    let key = text.trim();
    if key.is_empty() {
        bail!("no key was given");
    }
    if !key.chars().all(|letter| letter.is_ascii_graphic()) {
        bail!("not a key: it has spaces, line breaks or characters that no key has");
    }
    Ok(key.into())
}

fn piped(stdin: &Stdin) -> Result<String> {
    let mut text = String::new();
    stdin
        .lock()
        .take(KEY_BYTES_LIMIT)
        .read_to_string(&mut text)
        .context("the key cannot be read")?;
    Ok(text)
}

/// Reads a key from the terminal. The prompt is shown once typing is hidden.
fn typed(stdin: &Stdin, prompt: &str) -> Result<String> {
    let _hidden = HiddenInput::begin(stdin)?;
    let mut stderr = std::io::stderr();
    write!(stderr, "{prompt}")?;
    let line = line(stdin);
    writeln!(stderr)?;
    line
}

/// Implements the line editing that the raw terminal does not do.
fn line(stdin: &Stdin) -> Result<String> {
    let mut line = Vec::new();
    for byte in stdin.lock().take(KEY_BYTES_LIMIT).bytes() {
        match byte.context("the key cannot be read")? {
            b'\r' | b'\n' | END => break,
            INTERRUPT => bail!("interrupted: no key was stored"),
            BACKSPACE | DELETE => drop(line.pop()),
            ERASE => line.clear(),
            letter => line.push(letter),
        }
    }
    String::from_utf8(line).context("not a key")
}

/// Hides the typed text on the terminal until dropped.
struct HiddenInput<'a> {
    stdin: &'a Stdin,
    before: Termios,
}

impl<'a> HiddenInput<'a> {
    /// Signals are off, too, because the process would end without restoring the terminal; `line`
    /// handles their keys.
    fn begin(stdin: &'a Stdin) -> Result<Self> {
        let before = tcgetattr(stdin).context("the terminal cannot be asked")?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin, OptionalActions::Flush, &modes).context("the terminal cannot be set")?;
        Ok(Self { stdin, before })
    }
}

impl Drop for HiddenInput<'_> {
    fn drop(&mut self) {
        // A closed terminal needs no restoring.
        let _ = tcsetattr(self.stdin, OptionalActions::Now, &self.before);
    }
}
