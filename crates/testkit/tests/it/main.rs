//! The rules of the house that the compiler does not know.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so and stop")]

mod tidy;
