//! `look`: the text in a picture with its positions, for models that accept no pictures.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::message::CallArtifact;
use quintet_kernel::pictures::LOOK_TOOL;
use quintet_kernel::port::{
    Blobs, BoxFuture, Invocation, Ocr, RecognizedText, StorageError, Tool, ToolContext, ToolOutput,
};
use quintet_kernel::tool::{Assessment, CallSubject, Ending, Outcome, Risk, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::subject::{self, FileAccess};
use crate::{confined_fs, input, show};

/// The most bytes of a picture.
const PICTURE_LIMIT: u64 = 25 * 1024 * 1024;
/// The most pictures that an error names.
const NAMED_LIMIT: usize = 10;

/// The tool.
pub(crate) struct Look {
    spec: Arc<ToolSpec>,
    ocr: Arc<dyn Ocr>,
    blobs: Option<Arc<dyn Blobs>>,
}

#[derive(Debug, Deserialize)]
struct Input {
    picture: Option<String>,
    path: Option<PathBuf>,
}

impl Look {
    pub(crate) fn new(ocr: Arc<dyn Ocr>, blobs: Option<Arc<dyn Blobs>>) -> Self {
        let description =
            "Read the text in a picture by OCR: every line with its place in pixels, \
                           as (x, y, width, height) from the upper left corner. Without arguments \
                           it reads the newest picture of this conversation, such as the last \
                           screenshot."
                .to_owned();
        let properties = json!({
            "picture": {
                "type": "string",
                "description": "Name of a picture of this conversation",
            },
            "path": {
                "type": "string",
                "description": "A picture in the workspace instead, by its path (PNG or JPEG)",
            },
        });
        Self {
            spec: super::spec(ToolKind::Read, LOOK_TOOL, description, properties, &[]),
            ocr,
            blobs,
        }
    }

    async fn look(&self, call: &Invocation) -> Result<ToolOutput, String> {
        let (name, bytes) = match input::parse(&call.input)? {
            Input { picture: Some(_), path: Some(_) } => {
                return Err("invalid input: give either /picture or /path".to_owned());
            }
            Input { path: Some(path), .. } => {
                let name = path.display().to_string();
                (name, read_file(call.workspace.clone(), path).await?)
            }
            Input { picture, path: None } => {
                let picture = chosen(&call.pictures, picture.as_deref())?;
                (picture.name.clone(), self.read_picture(picture).await?)
            }
        };
        let read = self.ocr.read(bytes).await.map_err(|error| format!("{name}: {error}"))?;
        Ok(show::output(&report(&name, &read), "picture.txt"))
    }

    async fn read_picture(&self, picture: &CallArtifact) -> Result<Vec<u8>, String> {
        let name = &picture.name;
        let blobs = self.blobs.as_ref().ok_or("there are no pictures here")?;
        if picture.size > PICTURE_LIMIT {
            return Err(too_large(name));
        }
        blobs.get(&picture.blob).await.map_err(|error| match error {
            StorageError::Missing(_) => format!("{name} is not kept any more"),
            error => format!("{name}: {error}"),
        })
    }
}

impl Tool for Look {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            let (preview, subject) = match input::parse(&call.input) {
                Ok(Input { path: Some(path), .. }) => {
                    let preview = format!("read the text in {}", path.display());
                    let named = vec![path];
                    (preview, subject::looked_up(&call.workspace, FileAccess::Reads, named).await)
                }
                Ok(Input { picture, path: None }) => {
                    let what = picture.unwrap_or_else(|| "the newest picture".to_owned());
                    (format!("read the text in {what}"), CallSubject::default())
                }
                Err(why) => return super::nothing_will_run(why),
            };
            Assessment {
                risk: Risk::Low,
                reasons: vec!["only reads a picture".to_owned()],
                reversible: true,
                preview,
                subject,
                settled: None,
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            tokio::select! {
                looked = self.look(&call) => {
                    looked.unwrap_or_else(|why| Outcome::failure(why).into())
                }
                () = context.cancel.cancelled() => {
                    Outcome::ended(Ending::Cancelled, "cancelled").into()
                }
            }
        })
    }
}

/// The picture of a name, or the newest.
fn chosen<'a>(
    pictures: &'a [CallArtifact],
    name: Option<&str>,
) -> Result<&'a CallArtifact, String> {
    let Some(newest) = pictures.first() else {
        return Err("this conversation has no picture; give /path for one of the workspace".into());
    };
    let Some(name) = name else { return Ok(newest) };
    pictures.iter().find(|picture| picture.name == name).ok_or_else(|| {
        let mut known: Vec<&str> = pictures.iter().map(|picture| picture.name.as_str()).collect();
        known.dedup();
        known.truncate(NAMED_LIMIT);
        format!("no picture {name:?} in this conversation; the newest are {}", known.join(", "))
    })
}

async fn read_file(workspace: PathBuf, path: PathBuf) -> Result<Vec<u8>, String> {
    let read = move || read_now(&workspace, &path);
    let read = tokio::task::spawn_blocking(read).await;
    read.map_err(|error| format!("the read broke off: {error}"))?
}

fn read_now(workspace: &Path, path: &Path) -> Result<Vec<u8>, String> {
    let file = confined_fs::open(workspace, path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(PICTURE_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("{}: {error}", path.display()))?;
    if bytes.len() as u64 > PICTURE_LIMIT {
        return Err(too_large(&path.display().to_string()));
    }
    Ok(bytes)
}

fn too_large(name: &str) -> String {
    format!("{name} is larger than {} MB", PICTURE_LIMIT / 1024 / 1024)
}

fn report(name: &str, read: &RecognizedText) -> String {
    let RecognizedText { width, height, lines } = read;
    let count = show::count(lines.len(), "line");
    let mut text = format!("{name}, {width} by {height} pixels, {count} of text");
    for line in lines {
        let text_line = line.text.replace(['\n', '\r'], " ");
        let (x, y) = (line.x, line.y);
        let _infallible = write!(text, "\n({x}, {y}, {}, {}) {text_line}", line.width, line.height);
    }
    text
}
