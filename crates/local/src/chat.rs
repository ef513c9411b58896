//! Formats conversations for the models and parses their answers. Pure; works on text, not tokens.

mod call;
mod chatml;
mod offer;
mod reader;
pub(crate) mod small;
mod spaced;

pub(crate) use chatml::{Piece, Script, interjection, is_text, render};
pub(crate) use reader::Reader;
