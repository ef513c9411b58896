//! Files of sessions: pictures are shown, everything else is a download.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use quintet_kernel::{BlobId, CallId, State};

use super::assets;

/// The content and type of a file that a call produced or, without a call, of an attachment.
pub(super) fn find(state: &State, call: Option<&CallId>, name: &str) -> Option<(BlobId, String)> {
    let Some(call) = call else {
        return state.attachment(name).map(|file| (file.blob.clone(), file.mime.clone()));
    };
    let of_call =
        state.messages.iter().rev().find(|message| message.call.as_ref() == Some(call))?;
    let file = of_call.files.iter().find(|file| file.name == name)?;
    Some((file.blob.clone(), file.mime.clone()))
}

/// A response with a file. Nothing in the file is ever executed by a browser.
pub(super) fn response(content: Vec<u8>, mime: &str) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    let mime = match mime {
        "image/png" => "image/png",
        "image/jpeg" => "image/jpeg",
        "image/webp" => "image/webp",
        "image/gif" => "image/gif",
        "image/svg+xml" => "image/svg+xml",
        _ => "application/octet-stream",
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(mime));
    if !mime.starts_with("image/") {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    assets::protect(headers);
    // An SVG that is opened by itself is a document: it may load nothing and run no script.
    let sandbox =
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    headers.insert(header::CONTENT_SECURITY_POLICY, sandbox);
    response
}
