//! The language of the models: how a conversation is written down for them and how their answers
//! are read. Pure; knows nothing of tokens.

mod call;
mod chatml;
mod offer;
mod reader;
pub(crate) mod small;
mod spaced;

pub(crate) use chatml::{Piece, Script, interjection, is_text, render};
pub(crate) use reader::Reader;
