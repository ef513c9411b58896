//! Contents that are among the objects of the repository around a workspace, so that they need no copy.
//!
//! The `git` program is asked, in the sandbox: a repository's settings can make it run anything.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::git;
use crate::run::{End, Runner};

/// The name of an object.
pub(super) type Oid = String;

/// How the id of a blob begins that is an object.
const PREFIX: &str = "git-";
/// The most that is asked for at once: objects, and their bytes.
const BATCH_OBJECTS: usize = 1_000;
const BATCH_BYTES: u64 = 12 * 1024 * 1024;
/// How much content is held in memory; the rest is put into a file.
const HELD: u64 = 64 * 1024 * 1024;

/// The files that are in the index of git, with the flag that nothing is to be left unchecked, but for
/// those whose content git may store in another form; then those that changed since, then whether line
/// ends are converted. An empty name comes between these.
const TRACKED: &str = "git_() { LC_ALL=C GIT_CONFIG_NOSYSTEM=1 git --no-optional-locks \
    -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.trustctime=true \
    -c core.checkStat=default -c core.ignoreStat=false \"$@\"; }
    git_ ls-files -v -s -z -- ':(attr:!filter !text !eol !ident !working-tree-encoding)' &&
    printf '\\0' && git_ ls-files -z -m && printf '\\0' && { git config core.autocrlf || true; }";

/// The files whose content git has, by their paths from the workspace on. Where git cannot say, none.
pub(crate) async fn tracked(runner: &Runner, workspace: &Path) -> HashMap<String, Oid> {
    match git::run_plain(runner, workspace, TRACKED).await {
        Ok(finished) if finished.end == End::Exited(0) && finished.stdout.is_whole() => {
            parse(&finished.stdout.content()).unwrap_or_default()
        }
        Ok(_) | Err(_) => HashMap::new(),
    }
}

fn parse(output: &[u8]) -> Option<HashMap<String, Oid>> {
    let mut records = output.split(|byte| *byte == 0);
    let mut files = HashMap::new();
    for record in records.by_ref().take_while(|record| !record.is_empty()) {
        // A tag, the mode, the name of the object, the stage, and the path.
        let Ok(record) = std::str::from_utf8(record) else { continue };
        let (facts, path) = record.split_once('\t')?;
        if let ["H", "100644" | "100755", oid, "0"] = facts.split(' ').collect::<Vec<_>>()[..] {
            files.insert(path.to_owned(), oid.to_owned());
        }
    }
    for record in records.by_ref().take_while(|record| !record.is_empty()) {
        if let Ok(path) = std::str::from_utf8(record) {
            files.remove(path);
        }
    }
    let converts = records.next().map(<[u8]>::trim_ascii);
    matches!(converts, Some(b"" | b"false")).then_some(files)
}

/// The id that a record has for an object.
pub(super) fn blob(oid: &str) -> Option<BlobId> {
    BlobId::parse(&format!("{PREFIX}{oid}"))
}

/// True if this content has this id, whether that is an object's or a plain hash.
pub(crate) fn has_id(content: &[u8], id: &BlobId) -> bool {
    match id.as_str().strip_prefix(PREFIX) {
        Some(oid) => is_object(oid, content),
        None => hex(&Sha256::digest(content)) == id.as_str(),
    }
}

/// True if this content is that object.
pub(super) fn is_object(oid: &str, content: &[u8]) -> bool {
    let head = format!("blob {}\0", content.len());
    let mine = match oid.len() {
        40 => {
            let mut hash = Sha1::default();
            sha1::Digest::update(&mut hash, head.as_bytes());
            sha1::Digest::update(&mut hash, content);
            hex(&sha1::Digest::finalize(hash))
        }
        64 => hex(&Sha256::new().chain_update(head.as_bytes()).chain_update(content).finalize()),
        _ => return false,
    };
    mine == oid
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _infallible = write!(hex, "{byte:02x}");
    }
    hex
}

/// Objects that were read; some may be in a file that goes with this.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    bodies: HashMap<BlobId, BlobBody>,
    held: u64,
    spilled: Option<(NamedTempFile, u64)>,
}

impl Objects {
    /// Reads the objects that changes refer to.
    pub(crate) async fn of(
        runner: &Runner,
        workspace: &Path,
        cache: &Path,
        changes: &[ChangedFile],
    ) -> Self {
        let sides = changes.iter().flat_map(|it| [&it.before, &it.after]).flatten();
        let wanted = sides.filter_map(|side| match &side.body {
            Some(BlobBody::Hash(id)) => Some((id.as_str().strip_prefix(PREFIX)?, side.size)),
            Some(BlobBody::Bytes(_) | BlobBody::File(_)) | None => None,
        });
        let mut wanted: Vec<(&str, u64)> =
            wanted.filter(|(oid, _)| oid.bytes().all(|it| it.is_ascii_hexdigit())).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut objects = Self::default();
        while !wanted.is_empty() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while let Some((oid, size)) = wanted.pop() {
                if !batch.is_empty() && (batch.len() >= BATCH_OBJECTS || bytes + size > BATCH_BYTES)
                {
                    wanted.push((oid, size));
                    break;
                }
                bytes += size;
                batch.push(oid);
            }
            let command = format!(
                "GIT_NO_LAZY_FETCH=1 git cat-file --batch <<'END'\n{}\nEND\n",
                batch.join("\n")
            );
            if let Ok(finished) = git::run_plain(runner, workspace, &command).await {
                objects.take(&finished.stdout.content(), cache);
            }
        }
        objects
    }

    /// Puts contents where only their ids were.
    pub(crate) fn fill(&self, changes: &mut [ChangedFile]) {
        let sides = changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten();
        for FileContent { body, .. } in sides {
            if let Some(BlobBody::Hash(id)) = body
                && let Some(found) = self.bodies.get(id)
            {
                *body = Some(found.clone());
            }
        }
    }

    /// Takes objects from what `cat-file` wrote: a line with name, kind and length, then the content.
    fn take(&mut self, mut output: &[u8], cache: &Path) {
        while let Some(end) = memchr::memchr(b'\n', output) {
            let head = String::from_utf8_lossy(&output[..end]);
            let mut words = head.split(' ');
            let (oid, kind, length) = (words.next(), words.next(), words.next());
            output = &output[end + 1..];
            let Some(length) =
                length.and_then(|it| it.parse().ok()).filter(|_| kind == Some("blob"))
            else {
                continue;
            };
            let Some((content, rest)) = output.split_at_checked(length) else { return };
            output = rest.strip_prefix(b"\n").unwrap_or(rest);
            if let Some(id) = oid.filter(|oid| is_object(oid, content)).and_then(blob) {
                let body = self.body(content, cache);
                self.bodies.extend(body.map(|body| (id, body)));
            }
        }
    }

    fn body(&mut self, content: &[u8], cache: &Path) -> Option<BlobBody> {
        let length = content.len() as u64;
        if self.held + length <= HELD {
            self.held += length;
            return Some(BlobBody::Bytes(content.to_vec()));
        }
        if self.spilled.is_none() {
            self.spilled = Some((NamedTempFile::new_in(cache).ok()?, 0));
        }
        let (file, offset) = self.spilled.as_mut()?;
        file.write_all(content).ok()?;
        let extent = FileRange { file: file.path().to_owned(), offset: *offset, length };
        *offset += length;
        Some(BlobBody::File(extent))
    }
}
