//! Contents that are among the objects of the repository around a workspace, so that they need no copy.
//!
//! The `git` program is asked, in the sandbox: a repository's settings can make it run anything.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write as _};
use std::path::Path;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::snapshot::Moment;
use crate::run::{End, Runner};
use crate::{git, repository};

/// The name of an object.
pub(super) type ObjectId = String;

/// How the id of a blob begins that is an object.
const PREFIX: &str = "git-";
/// The most that is asked for at once: objects, and their bytes.
const BATCH_OBJECTS: usize = 1_000;
const BATCH_BYTES: u64 = 12 * 1024 * 1024;
/// The longest object that is held in memory, and how much is held in all, in bytes.
const HELD_OBJECT_LIMIT: usize = 1024 * 1024;
const HELD_LIMIT: usize = 64 * 1024 * 1024;

/// The files that are in the index of git, with the flag that nothing is to be left unchecked, but for
/// those whose content git may store in another form; then those that changed since, then whether line
/// ends are converted. An empty name comes between these.
const TRACKED: &str = "git_() { LC_ALL=C GIT_CONFIG_NOSYSTEM=1 git --no-optional-locks \
    -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.trustctime=true \
    -c core.checkStat=default -c core.ignoreStat=false \"$@\"; }
    git_ ls-files -v -s -z -- ':(attr:!filter !text !eol !ident !working-tree-encoding)' &&
    printf '\\0' && git_ ls-files -z -m && printf '\\0' && { git config core.autocrlf || true; }";

/// The files whose content git has.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    /// By their paths from the workspace on.
    pub(super) files: HashMap<String, ObjectId>,
    /// When git was asked. A file that changed since may be another.
    pub(super) at: Moment,
}

impl Tracked {
    /// Asks git. Where it cannot say, or is not in use, there are none.
    pub(super) async fn ask(runner: &Runner, workspace: &Path, at: Moment) -> Self {
        if !repository::is_around(workspace) {
            return Self::default();
        }
        let files = match git::run_plain(runner, workspace, TRACKED).await {
            Ok(finished) if finished.end == End::Exited(0) && finished.stdout.is_whole() => {
                parse(&finished.stdout.content()).unwrap_or_default()
            }
            Ok(_) | Err(_) => HashMap::new(),
        };
        Self { files, at }
    }
}

fn parse(output: &[u8]) -> Option<HashMap<String, ObjectId>> {
    let mut records = output.split(|byte| *byte == 0);
    let mut files = HashMap::new();
    for record in records.by_ref().take_while(|record| !record.is_empty()) {
        // A tag, the mode, the name of the object, the stage, and the path.
        let Ok(record) = std::str::from_utf8(record) else { continue };
        let (facts, path) = record.split_once('\t')?;
        if let ["H", "100644" | "100755", object, "0"] = facts.split(' ').collect::<Vec<_>>()[..] {
            files.insert(path.to_owned(), object.to_owned());
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
pub(super) fn blob(object: &str) -> Option<BlobId> {
    BlobId::parse(&format!("{PREFIX}{object}"))
}

/// True if this content has this id, whether that is an object's or a plain hash.
pub(super) fn has_id(content: &[u8], id: &BlobId) -> bool {
    match id.as_str().strip_prefix(PREFIX) {
        Some(object) => is_object(object, content),
        None => hex::encode(Sha256::digest(content)) == id.as_str(),
    }
}

/// True if this content is that object.
pub(super) fn is_object(object: &str, content: &[u8]) -> bool {
    let head = format!("blob {}\0", content.len());
    let hash = match object.len() {
        40 => {
            let mut hash = Sha1::default();
            sha1::Digest::update(&mut hash, head.as_bytes());
            sha1::Digest::update(&mut hash, content);
            hex::encode(sha1::Digest::finalize(hash))
        }
        _ => hex::encode(Sha256::new().chain_update(head).chain_update(content).finalize()),
    };
    hash == object
}

/// Puts contents where changes have only the ids of objects. Those that are not held in memory are in
/// the returned file.
pub(super) async fn fill(
    runner: &Runner,
    workspace: &Path,
    cache: &Path,
    changes: &mut [ChangedFile],
) -> Option<NamedTempFile> {
    let mut sides: Vec<_> =
        changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten().collect();
    let wanted = sides.iter().filter_map(|side| Some((object(side)?, side.size)));
    let mut wanted: Vec<_> = wanted.collect::<BTreeMap<_, _>>().into_iter().collect();
    if wanted.is_empty() {
        return None;
    }
    let mut found = Objects::new_in(cache).ok()?;
    while !wanted.is_empty() {
        let names = next_batch(&mut wanted).join("\n");
        let command = format!("GIT_NO_LAZY_FETCH=1 git cat-file --batch <<'END'\n{names}\nEND\n");
        let Ok(finished) = git::run_plain(runner, workspace, &command).await else { break };
        found.unpack(&finished.stdout.content()).ok()?;
    }
    for side in &mut sides {
        if let Some(body) = object(side).and_then(|object| found.bodies.get(&object)) {
            side.body = Some(body.clone());
        }
    }
    Some(found.file)
}

/// The object that a content is known by.
fn object(content: &FileContent) -> Option<ObjectId> {
    let Some(BlobBody::Hash(id)) = &content.body else { return None };
    let object = id.as_str().strip_prefix(PREFIX)?;
    object.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| object.to_owned())
}

/// Takes as many objects as are asked for at once, but at least one.
fn next_batch(wanted: &mut Vec<(ObjectId, u64)>) -> Vec<ObjectId> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some((object, size)) = wanted.pop_if(|(_, size)| {
        batch.is_empty() || batch.len() < BATCH_OBJECTS && bytes + *size <= BATCH_BYTES
    }) {
        batch.push(object);
        bytes += size;
    }
    batch
}

/// Objects that were read.
struct Objects {
    bodies: HashMap<ObjectId, BlobBody>,
    held: usize,
    /// What is not held.
    file: NamedTempFile,
}

impl Objects {
    fn new_in(cache: &Path) -> io::Result<Self> {
        Ok(Self { bodies: HashMap::new(), held: 0, file: NamedTempFile::new_in(cache)? })
    }

    /// Takes objects from what `cat-file` wrote: a line with name, kind and length, then the content.
    fn unpack(&mut self, mut output: &[u8]) -> io::Result<()> {
        while let Some(end) = memchr::memchr(b'\n', output) {
            let head = String::from_utf8_lossy(&output[..end]);
            output = &output[end + 1..];
            let [object, "blob", length] = head.split(' ').collect::<Vec<_>>()[..] else {
                continue;
            };
            let content = length.parse().ok().and_then(|length| output.split_at_checked(length));
            let Some((content, rest)) = content else { break };
            output = rest.strip_prefix(b"\n").unwrap_or(rest);
            if is_object(object, content) {
                let body = self.add(content)?;
                self.bodies.insert(object.to_owned(), body);
            }
        }
        Ok(())
    }

    fn add(&mut self, content: &[u8]) -> io::Result<BlobBody> {
        if content.len() <= HELD_OBJECT_LIMIT && self.held + content.len() <= HELD_LIMIT {
            self.held += content.len();
            return Ok(BlobBody::Bytes(content.to_vec()));
        }
        let offset = self.file.as_file().metadata()?.len();
        self.file.write_all(content)?;
        let (file, length) = (self.file.path().to_owned(), content.len() as u64);
        Ok(BlobBody::File(FileRange { file, offset, length }))
    }
}
