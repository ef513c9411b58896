//! Bytes as text, without cutting a character in two.

/// Decodes a stream piece by piece; what is not UTF-8 becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    /// The start of a character whose end has not come yet.
    held: Vec<u8>,
}

impl Decoder {
    /// As much text as is complete.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        self.held.extend_from_slice(bytes);
        let rest = self.held.split_off(whole(&self.held));
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held = rest;
        text
    }

    /// What is left when nothing more comes.
    pub(crate) fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        String::from_utf8_lossy(&held).into_owned()
    }
}

/// The length of `bytes` without a character that is only begun at its end.
pub(crate) fn whole(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let wanted = match bytes[bytes.len() - back] {
            0x00..=0x7f => return bytes.len(),
            0x80..=0xbf => continue,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xff => 4,
        };
        return if back < wanted { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

/// Where the first character begins that is not cut off at the start of `bytes`.
pub(crate) fn first(bytes: &[u8]) -> usize {
    let cut = bytes.iter().take(3).take_while(|byte| (0x80..=0xbf).contains(*byte)).count();
    if cut == bytes.len() { 0 } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_of_a_text_decodes_to_it() {
        let text = "aé€😀z";
        for at in 0..=text.len() {
            let mut decoder = Decoder::default();
            let (head, tail) = text.as_bytes().split_at(at);
            let got = [decoder.push(head), decoder.push(tail), decoder.finish()].concat();
            assert_eq!(got, text, "split at {at}");
        }
    }

    #[test]
    fn what_is_not_text_is_replaced_and_never_held_back() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.push(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(decoder.push(&[0x80; 5]), "\u{fffd}".repeat(5));
        assert_eq!(decoder.push(b"\xe2\x82"), "");
        assert_eq!(decoder.finish(), "\u{fffd}");
    }

    #[test]
    fn a_cut_falls_between_characters() {
        let text = "€€".as_bytes();
        assert_eq!(whole(&text[..5]), 3);
        assert_eq!(whole(&text[..3]), 3);
        assert_eq!(first(&text[1..]), 2);
        assert_eq!(first(text), 0);
        assert_eq!(whole(b""), 0);
        assert_eq!(first(b""), 0);
    }
}
