//! The language of the models: how a conversation is written down for them and how their answers
//! are read. Pure; knows nothing of tokens.

mod call;
mod chatml;
mod offer;
mod reader;
mod spaced;

pub(crate) use chatml::{Piece, Script, is_text, render};
pub(crate) use reader::Reader;
