//! Extracts a piece from a package: a wheel (zip) or a tarball (tar.gz).

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use zip::ZipArchive;

use super::Failure;
use super::part::Part;
use crate::{Package, Registry};

const TAR_BLOCK: u64 = 512;

/// Appends the package's piece to the file.
pub(super) async fn unpack(
    archive: &Path,
    package: &Package,
    part: &mut Part,
) -> Result<(), Failure> {
    let (archive, package) = (archive.to_owned(), package.clone());
    let target = part.path().to_owned();
    let (start, size) = (part.len(), package.size);
    let copied = tokio::task::spawn_blocking(move || {
        let mut target = Part::at(target)?;
        target.truncate(start)?;
        let mut writer = Writer { part: &mut target, failure: None };
        match copy(&archive, &package, &mut writer) {
            Ok(()) => Ok(()),
            Err(reason) => Err(writer.failure.map_or(Failure::Source(reason), Failure::Disk)),
        }
    });
    copied.await.map_err(|error| Failure::Source(error.to_string()))??;
    Ok(part.truncate(start + size)?)
}

/// True if the archive is complete. A wheel has its table of contents at its end; a tarball must be
/// read to its end.
pub(super) async fn is_complete(archive: &Path, package: &Package) -> bool {
    let (archive, registry) = (archive.to_owned(), package.registry);
    let open = move || match registry {
        Registry::PyPi => File::open(&archive).is_ok_and(|file| ZipArchive::new(file).is_ok()),
        Registry::Npm => tarball_is_complete(&archive),
    };
    tokio::task::spawn_blocking(open).await.unwrap_or(false)
}

fn tarball_is_complete(archive: &Path) -> bool {
    let Ok(file) = File::open(archive) else { return false };
    let mut tar = GzDecoder::new(BufReader::new(file));
    std::io::copy(&mut tar, &mut std::io::sink()).is_ok()
}

/// Copies the member; it must have exactly the expected size, whatever the package states.
fn copy(archive: &Path, package: &Package, target: &mut Writer<'_>) -> Result<(), String> {
    let file = File::open(archive).map_err(|error| error.to_string())?;
    let copied = match package.registry {
        Registry::PyPi => {
            let mut wheel = ZipArchive::new(file).map_err(|error| error.to_string())?;
            let member = wheel.by_name(&package.member).map_err(|error| error.to_string())?;
            std::io::copy(&mut member.take(package.size + 1), target)
        }
        Registry::Npm => {
            let mut tar = GzDecoder::new(BufReader::new(file));
            let size = seek_member(&mut tar, &package.member)?;
            std::io::copy(&mut tar.take(size.min(package.size + 1)), target)
        }
    };
    match copied.map_err(|error| error.to_string())? {
        copied if copied == package.size => Ok(()),
        _ => Err(format!("{} is not {} bytes long", package.member, package.size)),
    }
}

/// Reads a tar stream up to the content of a member and returns the size of the content.
fn seek_member(tar: &mut impl Read, name: &str) -> Result<u64, String> {
    let mut header = [0; TAR_BLOCK as usize];
    loop {
        tar.read_exact(&mut header).map_err(|error| error.to_string())?;
        if header.iter().all(|byte| *byte == 0) {
            return Err(format!("there is no {name} in it"));
        }
        let size = octal(&header[124..136]).ok_or("its table of contents cannot be read")?;
        if path(&header) == name {
            return Ok(size);
        }
        let padded = size.div_ceil(TAR_BLOCK).saturating_mul(TAR_BLOCK);
        let skipped = std::io::copy(&mut tar.take(padded), &mut std::io::sink());
        skipped.map_err(|error| error.to_string())?;
    }
}

/// The path of a member: a prefix and a name, each terminated by NUL.
fn path(header: &[u8]) -> String {
    let text = |field: &[u8]| {
        let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
        String::from_utf8_lossy(&field[..end]).into_owned()
    };
    let (name, prefix) = (text(&header[..100]), text(&header[345..500]));
    if header[257..262] == *b"ustar" && !prefix.is_empty() {
        format!("{prefix}/{name}")
    } else {
        name
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

/// Writes to a partial file and distinguishes disk errors from archive errors.
struct Writer<'a> {
    part: &'a mut Part,
    failure: Option<std::io::Error>,
}

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.part.add(bytes).map(|()| bytes.len()).inspect_err(|error| {
            self.failure = Some(std::io::Error::new(error.kind(), error.to_string()));
        })
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
