//! The query of a URL.

/// A parameter of the query, decoded.
pub fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// All parameters of the query, in order, decoded.
pub fn parameters(query: &str) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(query.as_bytes())
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let query = "after=6%7E1&name=a+b%20c&odd=100%&empty=";
        let value = |name| parameter(query, name);
        assert_eq!(value("after").as_deref(), Some("6~1"));
        assert_eq!(value("name").as_deref(), Some("a b c"));
        assert_eq!(value("odd").as_deref(), Some("100%"));
        assert_eq!(value("empty").as_deref(), Some(""));
        assert_eq!(value("none"), None);
    }
}
