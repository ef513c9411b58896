//! The query of a URL.

/// A parameter of the query, with its `%` and `+` undone.
pub fn parameter(query: &str, name: &str) -> Option<String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| unescaped(value))
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let (byte, left) = match (first, more) {
            (b'%', [high, low, left @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high * 16 + low, left),
                _ => (b'%', more),
            },
            (b'+', _) => (b' ', more),
            _ => (*first, more),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_unescaped() {
        let query = "after=6%7E1&name=a+b%20c&odd=100%&empty=";
        let value = |name| parameter(query, name);
        assert_eq!(value("after").as_deref(), Some("6~1"));
        assert_eq!(value("name").as_deref(), Some("a b c"));
        assert_eq!(value("odd").as_deref(), Some("100%"));
        assert_eq!(value("empty").as_deref(), Some(""));
        assert_eq!(value("none"), None);
    }
}
