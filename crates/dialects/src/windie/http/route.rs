//! What a request is about.

use axum::http::header;

use super::perception::PerceptionRoute;
use super::reply::Reply;
use super::runs::Run;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    OpenApi,
    Register,
    Me,
    Upload,
    Artifact(String),
    Summarize,
    Title,
    SemanticHealth,
    Sdk(About),
    Perception(PerceptionRoute),
    Embeddings,
    EmbeddingsHealth,
    Embed,
    Runs(Run),
}

/// What somebody wants to know of what the daemon would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    Models,
    Tools,
    Tool(String),
    SystemPrompt,
    Preview,
    QueryPlan,
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
    let get = |route| vec![("GET", route)];
    let post = |route| vec![("POST", route)];
    match segments.as_slice() {
        ["health"] => get(Route::Health),
        ["openapi.json"] => get(Route::OpenApi),
        ["embed"] => post(Route::Embed),
        ["api", "install", "register"] => post(Route::Register),
        ["api", "install", "me"] => get(Route::Me),
        ["api", "artifacts"] => post(Route::Upload),
        ["api", "artifacts", id] => {
            vec![("GET", Route::Artifact((*id).into())), ("HEAD", Route::Artifact((*id).into()))]
        }
        ["api", "semantic", "summarize"] => post(Route::Summarize),
        ["api", "semantic", "title"] => post(Route::Title),
        ["api", "semantic", "health"] => get(Route::SemanticHealth),
        ["api", "embeddings"] => post(Route::Embeddings),
        ["api", "embeddings", "health"] => get(Route::EmbeddingsHealth),
        ["api", "sdk", "models"] => get(Route::Sdk(About::Models)),
        ["api", "sdk", "tool-schemas"] => get(Route::Sdk(About::Tools)),
        ["api", "sdk", "tool-capabilities", name] => get(Route::Sdk(About::Tool((*name).into()))),
        ["api", "sdk", "system-prompt"] => get(Route::Sdk(About::SystemPrompt)),
        ["api", "sdk", "prompt-preview"] => post(Route::Sdk(About::Preview)),
        ["api", "sdk", "query-plan"] => post(Route::Sdk(About::QueryPlan)),
        ["api", "sdk", service, name] => {
            let route = PerceptionRoute::of(service, name).map(Route::Perception);
            route.map(post).unwrap_or_default()
        }
        ["api", "runs", rest @ ..] => {
            Run::offered(rest).iter().map(|(method, run)| (*method, Route::Runs(*run))).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windie::openapi;

    /// How many pairs of a method and a path there are.
    const SERVED: usize = 40;

    #[test]
    fn the_openapi_document_names_every_route_and_no_other() {
        let document = openapi::document();
        let mut named = 0;
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                let known = route(&method.to_uppercase(), path);
                assert!(known.is_ok(), "{method} {path} is documented but not served");
                named += 1;
            }
        }
        assert_eq!(named, SERVED, "a route is served but not documented");
    }

    #[test]
    fn what_is_not_there_is_told_from_what_is_not_allowed() {
        let check = |method: &str, path: &str, status: u16| {
            let said = route(method, path).map(|_| 200).unwrap_or_else(|reply| reply.said().0);
            assert_eq!(said, status, "{method} {path}");
        };
        check("GET", "/api/install/me", 200);
        check("GET", "/api/install/me/", 200);
        check("GET", "/api/install/me//", 404);
        check("POST", "/api/install/me", 405);
        check("DELETE", "/api/artifacts/x.png", 405);
        check("GET", "/api/artifacts/", 405);
        check("POST", "/api/artifacts", 200);
        check("POST", "/api/runs", 200);
        check("PUT", "/api/runs/x/events", 405);
        check("GET", "/api/runs/x/y/z", 404);
        check("POST", "/api/sdk/ocr/guess", 404);
        for path in ["", "/", "//", "/api", "/%00", "/ws", "no slash"] {
            check("GET", path, 404);
        }
    }
}
