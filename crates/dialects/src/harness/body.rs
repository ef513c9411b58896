//! The bodies of requests.

use axum::body::{Body, Bytes};
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt as _;

use super::decode::{File, LARGEST_BODY, LARGEST_FILE, Reply};

/// How much of a body that is too long is still read.
const DRAINED: usize = 64 * 1024 * 1024;

/// Reads a body. One that is too long is still read for a while, so that the client gets to see the
/// answer instead of a broken connection.
pub(super) async fn whole(mut body: Body, limit: usize) -> Result<Bytes, Reply> {
    let (mut content, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Reply::new(400, "the request body broke off"))?;
        let data = frame.into_data().unwrap_or_default();
        length += data.len();
        match length {
            _ if length <= limit => content.extend_from_slice(&data),
            _ if length <= limit + DRAINED => content = Vec::new(),
            _ => break,
        }
    }
    match length <= limit {
        true => Ok(content.into()),
        false => Err(Reply::new(413, "request body too large")),
    }
}

pub(super) fn is_multipart(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/form-data"))
}

/// The file in a form.
pub(super) async fn multipart(request: Request) -> Result<File, Reply> {
    let large = || Reply::new(413, "attachment is larger than 25 MiB");
    let broken = |error: MultipartError| {
        Reply::new(400, format!("invalid multipart body: {}", error.body_text()))
    };
    let (head, body) = request.into_parts();
    let body =
        whole(body, LARGEST_FILE + LARGEST_BODY).await.map_err(|reply| match reply.status {
            413 => large(),
            _ => reply,
        })?;
    let mut request = Request::from_parts(head, Body::from(body));
    DefaultBodyLimit::disable().apply(&mut request);
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|error| Reply::new(400, error.body_text()))?;
    while let Some(field) = form.next_field().await.map_err(broken)? {
        if field.name() != Some("file") {
            continue;
        }
        let name = field.file_name().unwrap_or_default().to_owned();
        let mime = field.content_type().unwrap_or_default().to_owned();
        let content = field.bytes().await.map_err(broken)?;
        return Ok(File { name, mime, content: content.into() });
    }
    Err(Reply::new(400, "multipart field \"file\" required"))
}
