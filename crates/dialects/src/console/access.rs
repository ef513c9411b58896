//! The login of a browser where a token is set: a form, and a cookie that scripts cannot read.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use super::assets;
use crate::transport::access::Token;
use crate::transport::query::parameter;

const COOKIE: &str = "quintet_console";

/// Checks the token or the cookie of a browser. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Login {
    tokens: Option<Tokens>,
}

#[derive(Clone, Debug)]
struct Tokens {
    /// The daemon's token.
    token: Token,
    /// The content of the cookie, which cannot be turned back into the token.
    cookie: Token,
    cookie_text: Secret,
}

#[derive(Clone)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Login {
    /// A login with the daemon's token; without a token every admitted client may use the page.
    pub(super) fn new(token: Option<&str>) -> Self {
        let tokens = token.map(|token| {
            let cookie = hex::encode(Sha256::digest(format!("quintet console cookie\n{token}")));
            Tokens {
                token: Token::new(token),
                cookie: Token::new(cookie.clone()),
                cookie_text: Secret(cookie),
            }
        });
        Self { tokens }
    }

    /// True if a request has the token or the cookie, or needs neither. As in all protocols, a `GET` may
    /// have the token as the parameter `access_token`.
    pub(super) fn admits(&self, request: &Parts) -> bool {
        let Some(tokens) = &self.tokens else { return true };
        let headers = &request.headers;
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let token = match (given.next(), given.next()) {
            (Some(value), None) => {
                let value = value.to_str().ok();
                value.and_then(|value| value.strip_prefix("Bearer ")).map(Into::into)
            }
            (Some(_), Some(_)) => None,
            (None, _) if request.method == Method::GET => named_token(request),
            (None, _) => None,
        };
        token.is_some_and(|token: String| tokens.token.matches(&token))
            || cookie(headers).is_some_and(|given| tokens.cookie.matches(given))
    }

    /// The page for a browser that sent the token itself, with a cookie for later requests.
    pub(super) fn remember(&self, request: &Parts, mut page: Response) -> Response {
        if let Some(tokens) = &self.tokens
            && cookie(&request.headers).is_none()
        {
            set_cookie(page.headers_mut(), &tokens.cookie_text.0);
        }
        page
    }

    /// The redirection of a browser that opened an address with the token: the cookie replaces the token, so
    /// that it stays neither in the address nor in the history.
    pub(super) fn named(&self, request: &Parts) -> Option<Response> {
        let tokens = self.tokens.as_ref()?;
        let given = named_token(request)?;
        tokens
            .token
            .matches(&given)
            .then(|| see_other(request.uri.path(), Some(&tokens.cookie_text.0)))
    }

    /// The answer to the form of the login page: a cookie, or the form again.
    pub(super) fn enter(&self, form: &[u8]) -> Response {
        let given = parameter(&String::from_utf8_lossy(form), "token").unwrap_or_default();
        let Some(tokens) = &self.tokens else { return see_other("/", None) };
        if tokens.token.matches(given.trim()) {
            see_other("/", Some(&tokens.cookie_text.0))
        } else {
            page("<p role=\"alert\">Wrong token.</p>")
        }
    }
}

/// The login page, for requests without a token.
pub(super) fn page(note: &str) -> Response {
    let html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Quintet: log in</title>\
         <link rel=\"stylesheet\" href=\"/app.css\"><main class=\"login\"><h1>Quintet</h1>{note}\
         <form method=\"post\" action=\"/login\"><label>Token <input name=\"token\" type=\"password\" \
         autocomplete=\"current-password\" required autofocus></label><button class=\"primary\">Log \
         in</button></form><p>The token is <code>auth.token</code> in the configuration file of the daemon.</p></main>"
    );
    let mut response = Response::new(Body::from(html));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    assets::protect(headers);
    response
}

fn see_other(path: &str, cookie: Option<&str>) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    headers.insert(header::LOCATION, path);
    if let Some(cookie) = cookie {
        set_cookie(headers, cookie);
    }
    response
}

/// The content of the cookie is derived from the token, so that it becomes invalid with it.
fn set_cookie(headers: &mut HeaderMap, value: &str) {
    let cookie = format!("{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        headers.insert(header::SET_COOKIE, cookie);
    }
}

fn named_token(request: &Parts) -> Option<String> {
    parameter(request.uri.query()?, "access_token")
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).map(str::trim);
    pairs.find_map(|pair| pair.strip_prefix(COOKIE)?.strip_prefix('='))
}
