//! What a request is about.

use axum::http::header;

use super::reply::Reply;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Register,
    Me,
}

/// What a request is about. A slash at the end of a path changes nothing.
pub(super) fn route(method: &str, path: &str) -> Result<Route, Reply> {
    let there = offered(path.strip_suffix('/').unwrap_or(path));
    if there.is_empty() {
        return Err(Reply::not_found());
    }
    let allowed: Vec<&str> = there.iter().map(|(method, _)| *method).collect();
    let found = there.into_iter().find(|(known, _)| *known == method);
    found.map(|(_, route)| route).ok_or_else(|| {
        Reply::new(405, "Method Not Allowed").with(header::ALLOW, allowed.join(", "))
    })
}

/// What there is at a path, by method.
fn offered(path: &str) -> Vec<(&'static str, Route)> {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match segments.as_slice() {
        ["health"] => vec![("GET", Route::Health)],
        ["api", "install", "register"] => vec![("POST", Route::Register)],
        ["api", "install", "me"] => vec![("GET", Route::Me)],
        _ => Vec::new(),
    }
}
