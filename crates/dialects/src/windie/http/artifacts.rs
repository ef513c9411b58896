//! Artifacts over HTTP: streamed uploads, downloads of the whole or of ranges.

use std::ops::Range;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{FromRequest as _, Multipart, Request};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::try_unfold;
use image::ImageFormat;
use quintet_kernel::port::{Artifact, StorageError, UploadWriter, Uploads};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::range::{Wanted, names, wanted};
use super::reply::Reply;
use super::{Caller, JsonReply, text};
use crate::windie::artifacts::{CHUNK_BYTES, SIGNATURE_BYTES, Taken, format_named};
use crate::windie::auth::User;
use crate::windie::fields::Wrong;
use crate::windie::serve::AppState;

/// Bytes of a refused upload that are still read, so that the client receives the answer.
const DRAIN_BYTES_LIMIT: u64 = 64 * 1024 * 1024;

/// `POST /api/artifacts/`: a form with a `file`.
pub(super) async fn upload(Caller { app, user }: Caller, request: Request) -> JsonReply {
    let host = text(request.headers(), "host").unwrap_or_default().to_owned();
    let mut form = Multipart::from_request(request, &()).await.map_err(|_| no_file())?;
    while let Some(field) = form.next_field().await.map_err(broken)? {
        if field.name() == Some("file") {
            let artifact = take(&app, user.as_ref(), field).await?;
            return Ok(Json(shown(&artifact, &host)));
        }
    }
    Err(no_file())
}

/// An artifact as clients see it.
pub(super) fn shown(artifact: &Artifact, host: &str) -> serde_json::Value {
    json!({
        "artifact_id": artifact.id,
        "content_type": artifact.mime,
        "size_bytes": artifact.size,
        "sha256": artifact.sha256,
        "url": format!("http://{host}/api/artifacts/{}", artifact.id),
    })
}

async fn take(
    app: &AppState,
    user: Option<&User>,
    mut field: Field<'_>,
) -> Result<Artifact, Reply> {
    let claimed = match claimed(&field) {
        Ok(kind) => kind,
        Err(refused) => {
            drain(&mut field, 0).await?;
            return Err(refused);
        }
    };
    let content = app.artifact_store.uploads.begin().await?;
    let (taken, content) = read(&mut field, content, app.settings.largest_artifact).await?;
    let taken = Taken { claimed: Some(claimed), ..taken };
    let kept = app.artifact_store.keep(user, taken, content).await?;
    kept.ok_or_else(unsupported)
}

fn unsupported() -> Reply {
    Reply::new(415, "Unsupported content type")
}

/// The format that the client claims.
fn claimed(field: &Field<'_>) -> Result<ImageFormat, Reply> {
    let Some(kind) = field.content_type().filter(|kind| !kind.is_empty()) else {
        return Err(Reply::new(400, "Missing content type"));
    };
    format_named(kind.split(';').next().unwrap_or_default().trim()).ok_or_else(unsupported)
}

/// Stores the content of an upload. Fails if it is too large.
async fn read(
    field: &mut Field<'_>,
    mut content: Box<dyn UploadWriter>,
    largest: u64,
) -> Result<(Taken, Box<dyn UploadWriter>), Reply> {
    let (mut head, mut pending, mut size) = (Vec::new(), Vec::new(), 0);
    let mut hash = Sha256::new();
    while let Some(bytes) = field.chunk().await.map_err(broken)? {
        size += bytes.len() as u64;
        if size > largest {
            drain(field, size).await?;
            return Err(Reply::new(413, "Artifact too large"));
        }
        hash.update(&bytes);
        let missing = SIGNATURE_BYTES.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(&bytes[..missing]);
        pending.extend_from_slice(&bytes);
        if pending.len() >= CHUNK_BYTES {
            content.write(std::mem::take(&mut pending)).await?;
        }
    }
    content.write(pending).await?;
    let sha256 = hex::encode(hash.finalize());
    Ok((Taken { head, size, sha256, claimed: None }, content))
}

async fn drain(field: &mut Field<'_>, mut read: u64) -> Result<(), Reply> {
    while let Some(bytes) = field.chunk().await.map_err(broken)? {
        read += bytes.len() as u64;
        if read > DRAIN_BYTES_LIMIT {
            break;
        }
    }
    Ok(())
}

fn no_file() -> Reply {
    Wrong::one(&["body".into(), "file".into()], "missing", "Field required").into()
}

fn broken(_: MultipartError) -> Reply {
    Reply::new(400, "There was an error parsing the body")
}

/// `GET /api/artifacts/{id}`, and `HEAD`.
pub(super) async fn fetch(
    Caller { app, user }: Caller,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Result<Response, Reply> {
    let id = uri.path().split('/').nth(3).unwrap_or_default();
    if !is_id(id) {
        return Err(Reply::new(400, "Invalid artifact id"));
    }
    let gone = || Reply::new(404, "Artifact not found");
    let artifact = app.artifact_store.find(user.as_ref(), id).await?.ok_or_else(gone)?;
    // The file may be missing if the daemon ended while it was stored or deleted.
    match app.artifact_store.uploads.part(id, 0, 1).await {
        Err(StorageError::Missing(_)) => return Err(gone()),
        read => read?,
    };
    let (tag, size) = (format!("\"{}\"", artifact.sha256), artifact.size);
    if names(text(&headers, "if-none-match"), &tag) {
        return Ok((StatusCode::NOT_MODIFIED, labels(&artifact, tag)).into_response());
    }
    let (status, range) = match wanted(requested_range(&headers, &tag), size) {
        Wanted::All => (StatusCode::OK, 0..size),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Nothing => {
            let reply = Reply::new(416, "Requested range not satisfiable");
            return Err(reply.with(header::CONTENT_RANGE, format!("bytes */{size}")));
        }
    };
    let body = match method {
        Method::HEAD => Body::empty(),
        _ => content(Arc::clone(&app.artifact_store.uploads), artifact.id.clone(), range.clone()),
    };
    let length = [(header::CONTENT_LENGTH, (range.end - range.start).to_string())];
    let part = (status == StatusCode::PARTIAL_CONTENT).then(|| {
        let range = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        [(header::CONTENT_RANGE, range)]
    });
    Ok((status, labels(&artifact, tag), length, part, body).into_response())
}

/// The requested range, unless the client has a part of another version.
fn requested_range<'a>(headers: &'a HeaderMap, tag: &str) -> Option<&'a str> {
    let same = text(headers, "if-range").is_none_or(|given| given == tag);
    text(headers, "range").filter(|_| same)
}

/// The headers of an artifact, which never changes and is for its owner alone.
fn labels(artifact: &Artifact, tag: String) -> [(HeaderName, String); 5] {
    [
        (header::CONTENT_TYPE, artifact.mime.clone()),
        (header::ETAG, tag),
        (header::ACCEPT_RANGES, "bytes".into()),
        (header::CACHE_CONTROL, "private, max-age=31536000, immutable".into()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".into()),
    ]
}

/// A range of bytes, read while they are sent.
fn content(uploads: Arc<dyn Uploads>, id: String, range: Range<u64>) -> Body {
    Body::from_stream(try_unfold((uploads, id, range), |(uploads, id, range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let length =
            usize::try_from(range.end - range.start).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        let bytes = uploads.part(&id, range.start, length).await?;
        if bytes.is_empty() {
            return Err(StorageError::Damaged(format!("artifact {id} is shorter than it was")));
        }
        let rest = range.start + bytes.len() as u64..range.end;
        Ok(Some((bytes, (uploads, id, rest))))
    }))
}

/// True if an id is a file name that cannot lead to another folder.
pub(super) fn is_id(id: &str) -> bool {
    let Some((name, ending)) = id.rsplit_once('.') else { return false };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    matches!(ending, "png" | "jpg" | "jpeg") && !name.is_empty() && name.bytes().all(plain)
}
