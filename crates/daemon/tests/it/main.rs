//! Integration tests of the daemon: the real program, real sockets, a scripted model.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]
#![expect(clippy::disallowed_methods, reason = "tests start the daemon themselves")]

mod acceptance;
mod access;
mod acp;
mod agent;
mod attachments;
mod bad_input;
mod chat;
mod client;
mod cluster;
mod coding;
mod computer;
mod crash;
mod daemon;
mod desktop;
mod doctor;
mod eval;
mod import;
mod jarvis;
mod keyring;
mod local;
mod login;
mod mcp_client;
mod mcp_server;
mod memory;
mod openai;
mod postgres;
mod sandbox;
mod search;
mod secrets;
mod senses;
mod sessions;
mod shutdown;
mod socket;
mod start;
mod stream;
mod terminal;
mod tree;
mod turns;
mod undo;
mod web_page;
mod windie;
mod worker;
mod workspace;
