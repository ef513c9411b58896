//! Objects in a bucket of an S3-compatible store.
//!
//! Requests are signed in their URL, so no message contains a URL.

use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quintet_kernel::port::{BoxFuture, StorageError};
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Client, Method, Response, StatusCode, Url, redirect};
use rustls::crypto::ring;
use rusty_s3::actions::{DeleteObject, GetObject, HeadObject, PutObject};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use tokio::time::sleep;

use super::{BucketLocation, Objects};
use crate::blobs::unavailable;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection without received data for this long is closed.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time of a request; far less than the time for which unreferenced content is kept.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of attempts if the server cannot be reached or is overloaded.
const TRIES_LIMIT: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(200);
/// Maximum length of an error text that is read, in bytes.
const ERROR_BYTES_LIMIT: usize = 4096;

/// Objects in a bucket.
pub(super) struct BucketObjects {
    http: Client,
    bucket: Bucket,
    prefix: String,
    credentials: Credentials,
}

impl BucketObjects {
    /// Fails if the URL of the bucket is not valid, or there are no credentials.
    pub(super) fn open(
        location: &BucketLocation,
        credentials: Option<&super::Credentials>,
    ) -> Result<Self, String> {
        let BucketLocation { name, prefix, endpoint, region } = location.clone();
        let super::Credentials { access_key, secret_key, session_token } =
            credentials.cloned().ok_or("it needs an access key")?;
        let credentials = match session_token {
            Some(token) => Credentials::new_with_token(access_key, secret_key, token),
            None => Credentials::new(access_key, secret_key),
        };
        // Amazon has a host name per bucket, but its certificate does not match bucket names with
        // dots. Other servers often have one host name.
        let style = match endpoint {
            None if !name.contains('.') => UrlStyle::VirtualHost,
            Some(_) | None => UrlStyle::Path,
        };
        let amazon = || Url::parse(&format!("https://s3.{region}.amazonaws.com"));
        let endpoint = endpoint.map_or_else(amazon, Ok).map_err(|error| error.to_string())?;
        let http = client(&endpoint)?;
        let bucket = Bucket::new(endpoint, style, name, region);
        let bucket = bucket.map_err(|error| error.to_string())?;
        Ok(Self { http, bucket, prefix, credentials })
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Sends a request; retries if the server cannot be reached or is overloaded.
    async fn send<'a, A: S3Action<'a>>(
        &self,
        action: A,
        body: Option<Bytes>,
    ) -> Result<Response, StorageError> {
        let method = Method::from_bytes(A::METHOD.to_str().as_bytes()).map_err(unavailable)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = self.http.request(method.clone(), action.sign(REQUEST_TIMEOUT));
            if let Some(body) = &body {
                let request_body = Body::from(body.clone());
                request = request.header(CONTENT_LENGTH, body.len()).body(request_body);
            }
            let sent = request.send().await;
            let transient = match &sent {
                Ok(response) => is_transient(response.status()),
                Err(error) => !error.is_builder(),
            };
            if !transient || tries == TRIES_LIMIT {
                return sent.map_err(unreachable);
            }
            sleep(RETRY_DELAY * tries).await;
        }
    }
}

impl Objects for BucketObjects {
    fn put(&self, name: &str, content: Bytes) -> BoxFuture<'_, Result<(), StorageError>> {
        let key = self.key(name);
        Box::pin(async move {
            let credentials = Some(&self.credentials);
            let head = HeadObject::new(&self.bucket, credentials, &key);
            let there = self.send(head, None).await?;
            let length = there.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
            let whole = length.and_then(|it| it.parse().ok()) == Some(content.len());
            if there.status().is_success() && whole {
                return Ok(());
            }
            let put = PutObject::new(&self.bucket, credentials, &key);
            checked(self.send(put, Some(content)).await?).await.map(drop)
        })
    }

    fn get(&self, name: &str) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let (key, name) = (self.key(name), name.to_owned());
        Box::pin(async move {
            let get = GetObject::new(&self.bucket, Some(&self.credentials), &key);
            let response = self.send(get, None).await?;
            if response.status() == StatusCode::NOT_FOUND {
                return Err(StorageError::Missing(format!("object {name}")));
            }
            let content = checked(response).await?.bytes().await.map_err(unreachable)?;
            Ok(content.into())
        })
    }

    fn delete(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>> {
        let key = self.key(name);
        Box::pin(async move {
            let delete = DeleteObject::new(&self.bucket, Some(&self.credentials), &key);
            let response = self.send(delete, None).await?;
            if response.status() == StatusCode::NOT_FOUND {
                return Ok(());
            }
            checked(response).await.map(drop)
        })
    }
}

impl fmt::Debug for BucketObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketObjects").field("bucket", &self.bucket.name()).finish_non_exhaustive()
    }
}

/// A client that follows no redirects, because a signature is valid for one server. Platform
/// certificates are loaded for HTTPS only, and only HTTPS uses the proxy of the environment.
fn client(endpoint: &Url) -> Result<Client, String> {
    let builder = if endpoint.scheme() == "https" {
        // An error means that another part of this process chose a provider first, which works as
        // well.
        let _ = ring::default_provider().install_default();
        Client::builder()
    } else {
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        Client::builder().tls_backend_preconfigured(tls).no_proxy()
    };
    builder
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .build()
        .map_err(|error| error.to_string())
}

fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The response, if it is successful; otherwise the server's error.
async fn checked(response: Response) -> Result<Response, StorageError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let text = response.bytes().await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..text.len().min(ERROR_BYTES_LIMIT)]).into_owned();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map_or("", |(code, _)| code);
    Err(unavailable(format!("the object store answers {status} {code}").trim_end()))
}

/// The error for a server that cannot be reached.
fn unreachable(error: reqwest::Error) -> StorageError {
    let error = error.without_url();
    let cause = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    let cause = cause.map_or_else(|| error.to_string(), ToString::to_string);
    unavailable(format!("the object store cannot be reached: {cause}"))
}
