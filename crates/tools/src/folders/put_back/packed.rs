//! Branches and tags that git has put together in one file since, as it does now and then.

use std::io::{BufRead, BufReader};
use std::path::Path;

use quintet_kernel::port::{Body, Content};

use super::around::Around;
use crate::beneath;

/// Where git puts them, in the folder of its files.
const PACKED: &str = "packed-refs";

impl Around<'_> {
    /// Whether a branch or tag without a file of its own is still where it was left: it would stay there.
    pub(super) fn is_packed(&self, path: &Path, after: Option<&Content>) -> bool {
        let Some(Body::Bytes(value)) = after.and_then(|after| after.body.as_ref()) else {
            return false;
        };
        let Some(folder) = self.git.around(path) else { return false };
        let name = path.strip_prefix(folder).unwrap_or(path);
        if !name.starts_with("refs") {
            return false;
        }
        let line = [value.trim_ascii(), b" ", name.as_os_str().as_encoded_bytes()].concat();
        let packed = beneath::open(self.root, &folder.join(PACKED));
        let lines = packed.map(|file| BufReader::new(file).split(b'\n'));
        lines.is_ok_and(|lines| lines.map_while(Result::ok).any(|it| it == line))
    }
}
