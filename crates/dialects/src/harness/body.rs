//! Reads the bodies of requests.

use axum::body::{Body, Bytes};
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request};
use axum::http::{HeaderMap, header};

use super::decode::{BODY_BYTES_LIMIT, FILE_BYTES_LIMIT, File, Reply};
use crate::transport::body::{self, BodyError};

/// Reads a whole body. Fails with the reply if it is incomplete or too large.
pub(super) async fn read_whole(body: Body, limit: usize) -> Result<Bytes, Reply> {
    body::read_body(body, limit).await.map_err(|error| match error {
        BodyError::Broken => Reply::new(400, "the request body is incomplete"),
        BodyError::TooLarge => Reply::new(413, "request body too large"),
    })
}

pub(super) fn is_multipart(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("multipart/form-data"))
}

/// Reads the file of a multipart form.
pub(super) async fn multipart(request: Request) -> Result<File, Reply> {
    let large = || Reply::new(413, "attachment is larger than 25 MiB");
    let broken = |error: MultipartError| {
        Reply::new(400, format!("invalid multipart body: {}", error.body_text()))
    };
    let (head, body) = request.into_parts();
    let body =
        read_whole(body, FILE_BYTES_LIMIT + BODY_BYTES_LIMIT).await.map_err(|reply| match reply
            .status
        {
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
