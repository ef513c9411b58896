//! Moves bytes for all dialects: listeners, access rules, HTTP bodies and routes, SSE, WebSockets and Unix
//! sockets.

pub mod access;
pub mod body;
pub(crate) mod connection_limit;
pub mod listener;
pub mod query;
pub(crate) mod routes;
pub mod sse;
pub mod uds;
pub(crate) mod ws;
