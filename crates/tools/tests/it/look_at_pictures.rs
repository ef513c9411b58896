//! `look` reads pictures of the conversation and of the workspace.

use std::sync::Arc;

use quintet_kernel::BlobId;
use quintet_kernel::message::CallArtifact;
use quintet_kernel::port::{Blobs as _, BoxFuture, Ocr, RecognizedText, SenseError, TextBox};
use quintet_kernel::tool::Risk;
use quintet_stores::memory::MemoryStore;
use serde_json::{Value, json};

use crate::bench::{Bench, text};

/// OCR of pictures that are plain text: a line each.
struct Plain;

impl Ocr for Plain {
    fn ready(&self) -> Result<(), SenseError> {
        Ok(())
    }

    fn read(&self, image: Vec<u8>) -> BoxFuture<'_, Result<RecognizedText, SenseError>> {
        Box::pin(async move {
            let text = String::from_utf8(image);
            let text = text.map_err(|_| SenseError::BadInput("not a picture".into()))?;
            let line = |(n, line): (u32, &str)| TextBox {
                text: line.into(),
                confidence: 0.9,
                x: 1,
                y: 10 * n,
                width: 20,
                height: 8,
            };
            let lines = (0..).zip(text.lines()).map(line).collect();
            Ok(RecognizedText { width: 640, height: 480, lines })
        })
    }
}

async fn picture(store: &MemoryStore, name: &str, content: &str) -> CallArtifact {
    let blob = store.put(content.into()).await.unwrap();
    CallArtifact { name: name.into(), mime: "image/png".into(), blob, size: content.len() as u64 }
}

#[tokio::test]
async fn pictures_are_read_by_name_or_the_newest() {
    let store = MemoryStore::new();
    let bench = Bench::looking(Arc::new(Plain), Some(Arc::new(store.clone())));
    bench.write("shot.png", "Open\nClose");
    let pictures = vec![
        picture(&store, "new.png", "Save\nCancel").await,
        picture(&store, "old.png", "Print").await,
        CallArtifact {
            blob: BlobId::parse("gone").unwrap(),
            ..picture(&store, "gone.png", "").await
        },
        CallArtifact { size: 1 << 30, ..picture(&store, "huge.png", "").await },
    ];
    let look = async |input: Value| text(&bench.run_with(pictures.clone(), "look", input).await);
    let newest =
        "new.png, 640 by 480 pixels, 2 lines of text\n(1, 0, 20, 8) Save\n(1, 10, 20, 8) Cancel";
    assert_eq!(look(json!({})).await, newest);
    assert_eq!(look(json!({ "picture": "new.png" })).await, newest);
    let old = "old.png, 640 by 480 pixels, 1 line of text\n(1, 0, 20, 8) Print";
    assert_eq!(look(json!({ "picture": "old.png" })).await, old);
    let file =
        "shot.png, 640 by 480 pixels, 2 lines of text\n(1, 0, 20, 8) Open\n(1, 10, 20, 8) Close";
    assert_eq!(look(json!({ "path": "shot.png" })).await, file);
    let unknown = "no picture \"x.png\" in this conversation; the newest are new.png, old.png, gone.png, huge.png";
    assert_eq!(look(json!({ "picture": "x.png" })).await, unknown);
    assert_eq!(look(json!({ "picture": "gone.png" })).await, "gone.png is not kept any more");
    assert_eq!(look(json!({ "picture": "huge.png" })).await, "huge.png is larger than 25 MB");
    let both = json!({ "picture": "new.png", "path": "shot.png" });
    assert_eq!(look(both).await, "invalid input: give either /picture or /path");
    let out = "path is outside the workspace: ../x.png";
    assert_eq!(look(json!({ "path": "../x.png" })).await, out);
}

#[tokio::test]
async fn what_cannot_be_read_says_why() {
    let bench = Bench::looking(Arc::new(Plain), None);
    std::fs::write(bench.path().join("bad.png"), [0xff, 0xfe]).unwrap();
    let no_picture = "! this conversation has no picture; give /path for one of the workspace";
    assert_eq!(bench.tell("look", json!({})).await, no_picture);
    assert_eq!(bench.tell("look", json!({ "path": "bad.png" })).await, "! bad.png: not a picture");
    let missing = bench.tell("look", json!({ "path": "nothing.png" })).await;
    assert!(missing.starts_with("! ") && missing.contains("nothing.png"), "{missing}");
    let assessed = bench.assess("look", json!({ "path": "bad.png" })).await;
    assert_eq!((assessed.risk, assessed.preview.as_str()), (Risk::Low, "read the text in bad.png"));
    assert_eq!(assessed.subject.paths, ["bad.png"]);
    let assessed = bench.assess("look", json!({})).await;
    assert_eq!(assessed.preview, "read the text in the newest picture");
}
