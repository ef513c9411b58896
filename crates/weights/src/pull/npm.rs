//! The address of a package's tarball in an npm registry.

use crate::Package;

/// Registries serve a tarball at `NAME/-/NAME-VERSION.tgz`, where the second name has no scope.
pub(super) fn find(registry: &str, package: &Package) -> Result<String, String> {
    let name = &package.package;
    let base = name.rsplit('/').next().unwrap_or(name);
    let registry = registry.trim_end_matches('/');
    Ok(format!("{registry}/{name}/-/{base}-{}.tgz", package.version))
}
