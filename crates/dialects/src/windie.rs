//! Computer use: an agent that thinks here and acts on the client's machine, over a WebSocket.
//! `docs/protocols/windie.md` is its text.
#![expect(dead_code, reason = "the connection is not there yet")]

mod catalogue;
mod decode;
mod definition;
mod fields;
mod instructions;
mod manifest;
mod offer;
mod patience;
mod query;
mod rehydrate;
mod results;
mod schema;
mod settings;
mod wire;
