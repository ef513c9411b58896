//! The files of the page, embedded in the program, and the headers that keep the page safe.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use sha2::{Digest as _, Sha256};

/// A file of the page.
#[derive(Debug)]
pub(super) struct Asset {
    path: &'static str,
    mime: &'static str,
    content: &'static [u8],
}

/// The page itself, which every path of the application shows.
pub(super) const PAGE: Asset = Asset {
    path: "/",
    mime: "text/html; charset=utf-8",
    content: include_bytes!("assets/index.html"),
};

/// Everything that the page loads. `make console` builds these files from `console/`.
pub(super) const FILES: &[Asset] = &[
    Asset {
        path: "/app.js",
        mime: "text/javascript; charset=utf-8",
        content: include_bytes!("assets/app.js"),
    },
    Asset {
        path: "/app.css",
        mime: "text/css; charset=utf-8",
        content: include_bytes!("assets/app.css"),
    },
    Asset { path: "/icon.svg", mime: "image/svg+xml", content: include_bytes!("assets/icon.svg") },
    Asset {
        path: "/manifest.webmanifest",
        mime: "application/manifest+json",
        content: include_bytes!("assets/manifest.webmanifest"),
    },
];

/// Allows scripts, styles and requests of this origin only, and no text that becomes HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; manifest-src 'self'; font-src 'none'; \
    frame-ancestors 'none'; base-uri 'none'; form-action 'self'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

/// The file at a path.
pub(super) fn file(path: &str) -> Option<&'static Asset> {
    FILES.iter().find(|file| file.path == path)
}

impl Asset {
    /// The file, or 304 if the browser has it already.
    pub(super) fn response(&self, request: &HeaderMap) -> Response {
        let tag = format!("\"{}\"", &hex::encode(Sha256::digest(self.content))[..32]);
        let is_known = request
            .get(header::IF_NONE_MATCH)
            .is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let mut response =
            Response::new(if is_known { Body::empty() } else { Body::from(self.content) });
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.mime));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        protect(headers);
        response
    }
}

/// Adds the headers that keep other pages and hostile content out.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
