//! Contents that are among the objects of the repository around a workspace, so that they need no copy.
//!
//! The `git` program is asked, in the sandbox: a repository's settings can make it run anything.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent, FileRange};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::snapshot::Moment;
use crate::git;
use crate::run::{End, Runner};

/// The name of an object.
pub(super) type ObjectId = String;

/// How the id of a blob begins that is an object.
const PREFIX: &str = "git-";
/// The most that is asked for at once: objects, and their bytes.
const BATCH_OBJECTS: usize = 1_000;
const BATCH_BYTES: u64 = 12 * 1024 * 1024;

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
    /// Asks git. Where it cannot say, there are none.
    pub(super) async fn ask(runner: &Runner, workspace: &Path, at: Moment) -> Self {
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

/// Puts contents where changes have only the ids of objects. They are in the returned file.
pub(super) async fn fill(
    runner: &Runner,
    workspace: &Path,
    cache: &Path,
    changes: &mut [ChangedFile],
) -> Option<NamedTempFile> {
    let mut wanted: Vec<(String, u64)> = sides(changes)
        .filter_map(|side| match &side.body {
            Some(BlobBody::Hash(id)) => {
                Some((id.as_str().strip_prefix(PREFIX)?.to_owned(), side.size))
            }
            Some(BlobBody::Bytes(_) | BlobBody::File(_)) | None => None,
        })
        .collect();
    wanted.retain(|(object, _)| object.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if wanted.is_empty() {
        return None;
    }
    wanted.sort_unstable();
    wanted.dedup();
    let (mut file, mut found) = (NamedTempFile::new_in(cache).ok()?, HashMap::new());
    while !wanted.is_empty() {
        let (mut count, mut bytes) = (0, 0);
        let mut fits = |(_, size): &(String, u64)| {
            bytes += size;
            count += 1;
            count == 1 || count <= BATCH_OBJECTS && bytes <= BATCH_BYTES
        };
        let batch = wanted.iter().take_while(|it| fits(it)).count();
        let batch: Vec<_> = wanted.drain(..batch).map(|(object, _)| object).collect();
        let names = batch.join("\n");
        let command = format!("GIT_NO_LAZY_FETCH=1 git cat-file --batch <<'END'\n{names}\nEND\n");
        let Ok(finished) = git::run_plain(runner, workspace, &command).await else { break };
        unpack(&finished.stdout.content(), &mut file, &mut found).ok()?;
    }
    for FileContent { body, .. } in sides(changes) {
        if let Some(BlobBody::Hash(id)) = body
            && let Some(extent) = found.get(id)
        {
            *body = Some(BlobBody::File(extent.clone()));
        }
    }
    Some(file)
}

/// What files were and are.
pub(super) fn sides(changes: &mut [ChangedFile]) -> impl Iterator<Item = &mut FileContent> {
    changes.iter_mut().flat_map(|it| [&mut it.before, &mut it.after]).flatten()
}

/// Takes objects from what `cat-file` wrote: a line with name, kind and length, then the content.
fn unpack(
    mut output: &[u8],
    file: &mut NamedTempFile,
    found: &mut HashMap<BlobId, FileRange>,
) -> std::io::Result<()> {
    let mut offset = file.as_file().metadata()?.len();
    while let Some(end) = memchr::memchr(b'\n', output) {
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        output = &output[end + 1..];
        let [object, "blob", length] = head.split(' ').collect::<Vec<_>>()[..] else { continue };
        let Some((content, rest)) =
            length.parse().ok().and_then(|length| output.split_at_checked(length))
        else {
            break;
        };
        output = rest.strip_prefix(b"\n").unwrap_or(rest);
        if let Some(id) = blob(object).filter(|_| is_object(object, content)) {
            file.write_all(content)?;
            let (path, length) = (file.path().to_owned(), content.len() as u64);
            found.insert(id, FileRange { file: path, offset, length });
            offset += length;
        }
    }
    Ok(())
}
