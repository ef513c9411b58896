//! Shortens ids of calls for APIs that limit their length. The id may come from any model; it only
//! matters that a result has the id of its call.

use std::borrow::Cow;

use quintet_kernel::CallId;

/// Length of an id that every API accepts.
const ID_LENGTH_LIMIT: usize = 64;

/// An id that is short enough for every API.
pub(crate) fn bounded(id: &CallId) -> Cow<'_, str> {
    match id.as_str() {
        short if short.len() <= ID_LENGTH_LIMIT => short.into(),
        long => format!("call_{:016x}", hash(long)).into(),
    }
}

/// An id of nine letters and digits, which is all that some servers accept.
pub(crate) fn nine_characters(id: &CallId) -> Cow<'_, str> {
    let id = id.as_str();
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.into();
    }
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = hash(id);
    let mut digit = || {
        let digit = DIGITS[usize::try_from(rest % 36).unwrap_or_default()];
        rest /= 36;
        char::from(digit)
    };
    (0..9).map(|_| digit()).collect::<String>().into()
}

/// FNV-1a: the same in every run, because the providers' prompt caches outlive the process.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_fit_and_stay_the_same() {
        let id = |text: &str| CallId::parse(text).unwrap();
        assert_eq!(bounded(&id("call_1")), "call_1");
        assert_eq!(bounded(&id(&"x".repeat(65))).len(), 21);
        assert_eq!(nine_characters(&id("abcDEF123")), "abcDEF123");
        let (one, two) = (
            nine_characters(&id("call_1")).into_owned(),
            nine_characters(&id("call_2")).into_owned(),
        );
        assert_eq!((one.len(), two.len()), (9, 9));
        assert_ne!(one, two);
        assert_eq!(nine_characters(&id("call_1")), one);
    }
}
