//! Contents that are objects of the workspace's repository, and therefore not copied.
//!
//! Objects are listed and read by `git`, which runs in the sandbox because a repository's settings can
//! make it run any program.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write as _};
use std::path::Path;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::run::{End, Runner};
use crate::{git, repository};

/// The hash of an object, in hex.
pub(super) type ObjectId = String;

/// The start of the blob ids that stand for objects.
const PREFIX: &str = "git-";
/// How many objects, and bytes of them, are read at once. The output of a command is limited.
const BATCH_OBJECTS: usize = 1_000;
const BATCH_BYTES: u64 = 12 * 1024 * 1024;
/// The largest object that is kept in memory, and the size of all of them, in bytes.
const MEMORY_OBJECT_LIMIT: usize = 1024 * 1024;
const MEMORY_LIMIT: usize = 64 * 1024 * 1024;

/// Lists the files in git's index, except those that git may store in another form; then those that
/// changed since; then whether line ends are converted. Empty names separate the lists.
const TRACKED: &str = "git_() { LC_ALL=C GIT_CONFIG_NOSYSTEM=1 git --no-optional-locks \
    -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.trustctime=true \
    -c core.checkStat=default -c core.ignoreStat=false \"$@\"; }
    git_ ls-files -v -s -z -- ':(attr:!filter !text !eol !ident !working-tree-encoding)' &&
    printf '\\0' && git_ ls-files -z -m && printf '\\0' && { git config core.autocrlf || true; }";

/// The files whose content git has, by path.
pub(super) type Tracked = HashMap<String, ObjectId>;

/// Queries git for the unchanged files of a workspace; none if it is in no repository, or git fails.
pub(super) async fn tracked(runner: &Runner, workspace: &Path) -> Tracked {
    if !repository::is_around(workspace) {
        return Tracked::new();
    }
    let listed = git::run_plain(runner, workspace, TRACKED).await.ok();
    let listed = listed.filter(|it| it.end == End::Exited(0) && it.stdout.is_whole());
    listed.and_then(|it| parse(&it.stdout.content())).unwrap_or_default()
}

fn parse(output: &[u8]) -> Option<Tracked> {
    let mut records = output.split(|byte| *byte == 0);
    let mut files = HashMap::new();
    for record in records.by_ref().take_while(|record| !record.is_empty()) {
        // A tag, the mode, the object, the stage, and the path.
        let Ok(record) = std::str::from_utf8(record) else { continue };
        let (fields, path) = record.split_once('\t')?;
        if let ["H", "100644" | "100755", object, "0"] = fields.split(' ').collect::<Vec<_>>()[..] {
            files.insert(path.to_owned(), object.to_owned());
        }
    }
    for changed in records.by_ref().take_while(|record| !record.is_empty()) {
        std::str::from_utf8(changed).ok().and_then(|path| files.remove(path));
    }
    let conversion = records.next().map(<[u8]>::trim_ascii);
    matches!(conversion, Some(b"" | b"false")).then_some(files)
}

/// The blob id that stands for an object.
pub(super) fn blob(object: &str) -> Option<BlobId> {
    BlobId::parse(&format!("{PREFIX}{object}"))
}

/// True if a content has this id, which stands for an object or is a plain hash.
pub(super) fn has_id(content: &[u8], id: &BlobId) -> bool {
    match id.as_str().strip_prefix(PREFIX) {
        Some(object) => is_object(object, content),
        None => hex::encode(Sha256::digest(content)) == id.as_str(),
    }
}

/// True if a content is this object.
pub(super) fn is_object(object: &str, content: &[u8]) -> bool {
    let head = format!("blob {}\0", content.len());
    let hash = if object.len() == 40 {
        let hash = sha1::Digest::chain_update(Sha1::default(), &head);
        hex::encode(sha1::Digest::finalize(sha1::Digest::chain_update(hash, content)))
    } else {
        hex::encode(Sha256::new().chain_update(head).chain_update(content).finalize())
    };
    hash == object
}

/// Adds the contents of objects to changes. Those that do not fit in memory are in the returned file.
pub(super) async fn fill(
    runner: &Runner,
    workspace: &Path,
    cache: &Path,
    changes: &mut [ChangedFile],
) -> Option<NamedTempFile> {
    let sides = || changes.iter().flat_map(|it| [&it.before, &it.after]).flatten();
    let needed = sides().filter_map(|side| Some((object(side)?.to_owned(), side.size)));
    let mut needed: Vec<_> = needed.collect::<BTreeMap<_, _>>().into_iter().collect();
    if needed.is_empty() {
        return None;
    }
    let (bodies, file) = (HashMap::new(), NamedTempFile::new_in(cache).ok()?);
    let mut found = Objects { bodies, in_memory: 0, file };
    while !needed.is_empty() {
        let names = next_batch(&mut needed).join("\n");
        let command = format!("GIT_NO_LAZY_FETCH=1 git cat-file --batch <<'END'\n{names}\nEND\n");
        let Ok(finished) = git::run_plain(runner, workspace, &command).await else { break };
        found.unpack(&finished.stdout.content()).ok()?;
    }
    for side in changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten() {
        if let Some(body) = object(side).and_then(|object| found.bodies.get(object)) {
            side.body = Some(body.clone());
        }
    }
    Some(found.file)
}

/// The object that a blob id stands for.
fn object(content: &FileContent) -> Option<&str> {
    let Some(BlobBody::Hash(id)) = &content.body else { return None };
    let object = id.as_str().strip_prefix(PREFIX)?;
    object.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(object)
}

/// Removes the objects to read next; at least one.
fn next_batch(needed: &mut Vec<(ObjectId, u64)>) -> Vec<ObjectId> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some((object, size)) = needed.pop_if(|(_, size)| {
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
    in_memory: usize,
    /// The contents that are not in memory.
    file: NamedTempFile,
}

impl Objects {
    /// Parses the output of `cat-file`: a line with name, type and length, then the content.
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
        let in_memory = self.in_memory + content.len();
        if content.len() <= MEMORY_OBJECT_LIMIT && in_memory <= MEMORY_LIMIT {
            self.in_memory = in_memory;
            return Ok(BlobBody::Bytes(content.to_vec()));
        }
        let offset = self.file.as_file().metadata()?.len();
        self.file.write_all(content)?;
        let (file, length) = (self.file.path().to_owned(), content.len() as u64);
        Ok(BlobBody::File(FileRange { file, offset, length }))
    }
}
