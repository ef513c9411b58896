//! OpenAI chat completions, and everything that imitates them.

mod calls;
mod client;
mod decode;
mod listing;
mod media;
mod offer;
mod reading;
mod request;
mod template;
mod wire;

pub(crate) use client::{Call, Endpoint};
pub(crate) use listing::Listing;
pub(crate) use offer::Offer;
