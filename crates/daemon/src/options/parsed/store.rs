//! The options of the store of sessions and their content.

use anyhow::{Result, anyhow, bail};
use quintet_stores::objects::{Credentials, Location, ObjectSettings};

use super::Layers;

/// The PostgreSQL database, if there is one.
pub(super) fn url(layers: &Layers) -> Result<Option<String>> {
    let Some(url) = layers.str("store.url") else { return Ok(None) };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        bail!("store.url must begin with postgres:// ({})", layers.source("store.url"));
    }
    Ok(Some(url.into()))
}

/// The object store for content that is too long for the database, if configured.
pub(super) fn objects(layers: &Layers) -> Result<Option<ObjectSettings>> {
    let key = "store.blobs";
    let Some(url) = layers.str(key).filter(|url| !url.is_empty()) else { return Ok(None) };
    let source = layers.source(key);
    if layers.str("store.url").is_none() {
        bail!("{key} is for content of a PostgreSQL database: set store.url, too ({source})");
    }
    let location = Location::parse(url, variable(layers, "AWS_REGION"));
    let location = location.map_err(|why| anyhow!("{key}: {why} ({source})"))?;
    let credentials = match location {
        Location::Folder(_) => None,
        Location::Bucket(_) => Some(credentials(layers)?),
    };
    let kib = layers.number("store.blob_limit_kib").unwrap_or_default();
    let limit = usize::try_from(kib).unwrap_or(usize::MAX).saturating_mul(1024);
    Ok(Some(ObjectSettings { location, credentials, limit }))
}

/// The credentials of a bucket: both keys of the section, or the variables of Amazon's programs.
fn credentials(layers: &Layers) -> Result<Credentials> {
    let own = (layers.str("store.s3_access_key"), layers.str("store.s3_secret_key"));
    let (access_key, secret_key, session_token) = match own {
        (Some(access), Some(secret)) => (Some(access), Some(secret), None),
        (None, None) => (
            variable(layers, "AWS_ACCESS_KEY_ID"),
            variable(layers, "AWS_SECRET_ACCESS_KEY"),
            variable(layers, "AWS_SESSION_TOKEN"),
        ),
        (Some(_), None) => bail!("store.s3_access_key is set, and store.s3_secret_key is not"),
        (None, Some(_)) => bail!("store.s3_secret_key is set, and store.s3_access_key is not"),
    };
    let (Some(access_key), Some(secret_key)) = (access_key, secret_key) else {
        bail!(
            "store.blobs needs store.s3_access_key and store.s3_secret_key, or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY"
        );
    };
    Ok(Credentials {
        access_key: access_key.into(),
        secret_key: secret_key.into(),
        session_token: session_token.map(String::from),
    })
}

fn variable<'a>(layers: &'a Layers, name: &str) -> Option<&'a str> {
    layers.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
}
