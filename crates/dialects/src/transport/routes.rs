//! HTTP routes as rows of data, matched by axum's router.
//!
//! A protocol lists method, path and the decoded route; all other requests are refused with its own errors.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter};

/// A route: its method (or [`ANY`]), its path in axum's syntax, and a function that decodes the path.
pub(crate) type Row<R, E> = (&'static str, &'static str, fn(&PathParameters<'_>) -> Result<R, E>);

/// Matches every method.
pub(crate) const ANY: &str = "*";

/// The errors for requests that match no row.
#[derive(Debug)]
pub(crate) struct Refusals<E> {
    /// The error for an unknown path.
    pub(crate) unknown_path: fn(&str) -> E,
    /// The error for a known path with another method; the second argument lists the allowed ones.
    pub(crate) wrong_method: fn(&str, &str) -> E,
}

/// The named parts of a path.
#[derive(Debug)]
pub(crate) struct PathParameters<'a> {
    route: &'static str,
    path: &'a str,
}

impl<'a> PathParameters<'a> {
    /// The path segment named `{name}`; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &'a str {
        let wanted = format!("{{{name}}}");
        let mut parts = self.route.split('/').zip(self.path.split('/'));
        parts.find(|(part, _)| *part == wanted).map_or("", |(_, given)| given)
    }

    /// The whole path.
    pub(crate) fn full_path(&self) -> &'a str {
        self.path
    }
}

/// A router that decodes the route of each request, or the error, and calls `answer`.
pub(crate) fn router<S, R, E, A, F>(
    rows: &'static [Row<R, E>],
    refusals: &'static Refusals<E>,
    answer: A,
) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
    R: 'static,
    E: 'static,
    A: Fn(S, Result<R, E>, Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    let mut paths: BTreeMap<&'static str, Vec<&'static Row<R, E>>> = BTreeMap::new();
    for row in rows {
        paths.entry(row.1).or_default().push(row);
    }
    let mut router = Router::new();
    for (path, rows) in paths {
        let allowed = rows.iter().map(|(method, ..)| *method).collect::<Vec<_>>().join(", ");
        let refused = answer.clone();
        let refuse = move |State(state): State<S>, request: Request| {
            let why = (refusals.wrong_method)(request.uri().path(), &allowed);
            refused(state, Err(why), request)
        };
        let mut methods = MethodRouter::new().fallback(refuse);
        for (method, route, read) in rows {
            let answer = answer.clone();
            let handler = move |State(state): State<S>, request: Request| {
                let read = read(&PathParameters { route, path: request.uri().path() });
                answer(state, read, request)
            };
            methods = match filter(method) {
                Some(filter) => methods.on(filter, handler),
                None => methods.fallback(handler),
            };
        }
        // A trailing slash is ignored.
        if !path.contains("{*") {
            router = router.route(&format!("{path}/"), methods.clone());
        }
        router = router.route(path, methods);
    }
    router.fallback(move |State(state): State<S>, request: Request| {
        let why = (refusals.unknown_path)(request.uri().path());
        answer(state, Err(why), request)
    })
}

fn filter(method: &'static str) -> Option<MethodFilter> {
    match method {
        ANY => None,
        "GET" => Some(MethodFilter::GET),
        "POST" => Some(MethodFilter::POST),
        "DELETE" => Some(MethodFilter::DELETE),
        other => unreachable!("no route has the method {other}"),
    }
}

/// The decoded route of a request, as the router finds it.
#[cfg(test)]
pub(crate) fn find<R, E>(
    rows: &'static [Row<R, E>],
    refusals: &'static Refusals<E>,
    method: &str,
    path: &str,
) -> Result<R, E>
where
    R: Send + 'static,
    E: Send + 'static,
{
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use tower::ServiceExt as _;

    let found = Arc::new(Mutex::new(None));
    let record = |found: Arc<Mutex<Option<Result<R, E>>>>, read, _: Request| async move {
        *found.lock().unwrap() = Some(read);
        Response::default()
    };
    let router = router(rows, refusals, record).with_state(Arc::clone(&found));
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(router.oneshot(request)).unwrap();
    let found = found.lock().unwrap().take();
    found.expect("every request reaches the handler")
}
