//! Tests of house rules that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod tidy;
