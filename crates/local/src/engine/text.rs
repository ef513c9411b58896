//! Text out of tokens, which do not care where a letter ends.

/// Puts letters together.
#[derive(Debug, Default)]
pub(super) struct Letters {
    pending: Vec<u8>,
}

impl Letters {
    /// Takes bytes; returns the letters that are whole. What can never become one is replaced.
    pub(super) fn take(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::new();
        loop {
            let (valid, invalid) = match std::str::from_utf8(&self.pending) {
                Ok(valid) => {
                    text.push_str(valid);
                    self.pending.clear();
                    return text;
                }
                Err(error) => (error.valid_up_to(), error.error_len()),
            };
            text.push_str(&String::from_utf8_lossy(&self.pending[..valid]));
            self.pending.drain(..valid + invalid.unwrap_or(0));
            match invalid {
                Some(_) => text.push(char::REPLACEMENT_CHARACTER),
                None => return text,
            }
        }
    }

    /// What is left at the end.
    pub(super) fn rest(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

#[cfg(test)]
mod tests;
