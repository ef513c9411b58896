//! Parses the URL of an object store.

use std::fmt;
use std::path::PathBuf;

use reqwest::Url;

/// The region that most servers other than Amazon's accept.
const USUAL_REGION: &str = "us-east-1";

/// The location of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A folder that all nodes can access.
    Folder(PathBuf),
    /// A bucket of an S3-compatible store.
    Bucket(BucketLocation),
}

/// A bucket of an S3-compatible store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketLocation {
    /// The name of the bucket.
    pub name: String,
    /// The prefix of all object names.
    pub prefix: String,
    /// The server; Amazon's in the region if `None`.
    pub endpoint: Option<Url>,
    /// The region that requests are signed for.
    pub region: String,
}

impl Location {
    /// Parses `file:///folder` or `s3://bucket/prefix?endpoint=URL&region=NAME`. `region` is used
    /// if the URL names none.
    ///
    /// # Errors
    /// Fails with what is wrong with the URL.
    pub fn parse(url: &str, region: Option<&str>) -> Result<Self, String> {
        let parsed = Url::parse(url).map_err(|error| error.to_string())?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("credentials do not belong into the URL".into());
        }
        match parsed.scheme() {
            "file" => folder(&parsed),
            "s3" => bucket(&parsed, region).map(Self::Bucket),
            other => Err(format!("{other}: is not supported: use file:///folder or s3://bucket")),
        }
    }
}

fn folder(url: &Url) -> Result<Location, String> {
    let path = url.to_file_path().ok().filter(|_| url.query().is_none());
    path.map(Location::Folder).ok_or_else(|| "a folder is written file:///folder".into())
}

fn bucket(url: &Url, region: Option<&str>) -> Result<BucketLocation, String> {
    let name = url.host_str().filter(|name| !name.is_empty()).ok_or("the bucket is missing")?;
    let prefix = url.path().trim_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if !prefix.chars().all(plain) || prefix.contains("//") {
        return Err("a prefix may only have letters, digits, '-', '_', '.' and '/'".into());
    }
    let (mut endpoint, mut region) = (None, region.map(String::from));
    for (key, value) in url.query_pairs() {
        match &*key {
            "endpoint" => endpoint = Some(server(&value)?),
            "region" => region = Some(value.into_owned()),
            other => return Err(format!("{other}= is not known: use endpoint= and region=")),
        }
    }
    let region = region.filter(|region| !region.is_empty());
    let usual = || endpoint.as_ref().map(|_| USUAL_REGION.to_owned());
    let region = region.or_else(usual).ok_or("name the region: ?region=…")?;
    let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
    Ok(BucketLocation { name: name.into(), prefix, endpoint, region })
}

fn server(url: &str) -> Result<Url, String> {
    let parsed = Url::parse(url).map_err(|error| format!("endpoint {url}: {error}"))?;
    if matches!(parsed.scheme(), "http" | "https") && parsed.has_host() {
        Ok(parsed)
    } else {
        Err(format!("endpoint {url} must begin with https:// or http://"))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "file://{}", folder.display()),
            Self::Bucket(BucketLocation { name, prefix, .. }) => write!(f, "s3://{name}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, then: &str) {
        let read = Location::parse(url, None).map(|location| match &location {
            Location::Folder(_) => location.to_string(),
            Location::Bucket(BucketLocation { endpoint, region, .. }) => {
                let endpoint = endpoint.as_ref().map_or("Amazon", Url::as_str);
                format!("{location} in {region} at {endpoint}")
            }
        });
        assert_eq!(read.unwrap_or_else(|error| error), then, "{url}");
    }

    #[test]
    fn a_folder_or_a_bucket_is_parsed() {
        check("file:///srv/blobs", "file:///srv/blobs");
        check("s3://b?region=eu-west-1", "s3://b/ in eu-west-1 at Amazon");
        let own = "s3://b/a/c/?endpoint=http://127.0.0.1:9000";
        check(own, "s3://b/a/c/ in us-east-1 at http://127.0.0.1:9000/");
        let region = Location::parse("s3://b", Some("eu-west-3")).unwrap();
        assert!(matches!(region, Location::Bucket(bucket) if bucket.region == "eu-west-3"));
    }

    #[test]
    fn errors_name_the_problem() {
        check("/srv/blobs", "relative URL without a base");
        check("file://host/blobs", "a folder is written file:///folder");
        check("gs://b", "gs: is not supported: use file:///folder or s3://bucket");
        check("s3:///a?region=x", "the bucket is missing");
        check("s3://b", "name the region: ?region=…");
        check("s3://me:secret@b?region=x", "credentials do not belong into the URL");
        check("s3://b?region=x&acl=y", "acl= is not known: use endpoint= and region=");
        check("s3://b?endpoint=ftp://x", "endpoint ftp://x must begin with https:// or http://");
        let prefix = "a prefix may only have letters, digits, '-', '_', '.' and '/'";
        check("s3://b/a%20c?region=x", prefix);
    }
}
