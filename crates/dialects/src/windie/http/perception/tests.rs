//! Golden transcripts of requests about pictures and embeddings, with senses that say what a story wants.
//!
//! `> METHOD PATH [@USER] BODY` is a request and `<` its answer. `~ ocr|vision|embedder WORD` sets how a
//! sense answers (`off`, `missing`, `busy`, `failed`, `ready`), `~ lines [[TEXT,X,Y,WIDTH,HEIGHT],…]`
//! the text on every picture, `~ targets [[X,Y,LABEL,CONFIDENCE],…]` what is found on it, `~ answer TEXT`
//! its description, `~ vectors …` the vectors, `~ upload NAME [@USER] WxH` hands a picture in that is `$NAME` from then on.
//! `$PNG:WxH` is a picture in base64, `$c1`, `$c2` … are ids of rows in the order in which they were named. `UPDATE_GOLDEN=1` rewrites the answers.

use std::fmt::Write as _;
use std::sync::Mutex;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use image::{Rgb, RgbImage};
use quintet_kernel::port::{
    BoxFuture, Clock, EmbeddingSpace, Embeddings, RecognizedText, SenseError, TextBox,
    VisionResult, VisualTarget,
};
use quintet_kernel::{Stamp, Time};
use quintet_stores::{FileUploads, memory};
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::*;
use crate::windie::http::routed;

#[test]
fn transcripts() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    crate::golden::check("src/windie/http/golden", |script| {
        runtime.block_on(Story::new().tell(script))
    });
}

/// Senses that answer as they were told to.
#[derive(Default)]
struct Fake {
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    trouble: Option<SenseError>,
    lines: Vec<TextBox>,
    targets: Vec<VisualTarget>,
    answer: String,
    vectors: Vec<Vec<f32>>,
}

impl Fake {
    fn state(&self) -> Result<State, SenseError> {
        let state = self.state.lock().unwrap().clone();
        match state.trouble {
            Some(error) => Err(error),
            None => Ok(state),
        }
    }

    /// What is not there is known without any work; the rest is found out by trying.
    fn is_there(&self) -> Result<(), SenseError> {
        match self.state() {
            Err(error @ (SenseError::Off(_) | SenseError::MissingWeights(_))) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Ocr for Fake {
    fn ready(&self) -> Result<(), SenseError> {
        self.is_there()
    }

    fn read(&self, image: Vec<u8>) -> BoxFuture<'_, Result<RecognizedText, SenseError>> {
        Box::pin(async move {
            let picture = image::load_from_memory(&image).map_err(|error| {
                SenseError::BadInput(format!("the picture cannot be read: {error}"))
            })?;
            let lines = self.state()?.lines;
            Ok(RecognizedText { width: picture.width(), height: picture.height(), lines })
        })
    }
}

impl Vision for Fake {
    fn ready(&self) -> Result<(), SenseError> {
        self.is_there()
    }

    fn locate(
        &self,
        _: Vec<u8>,
        _: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<VisionResult<Vec<VisualTarget>>, SenseError>> {
        Box::pin(async move {
            let mut value = self.state()?.targets;
            value.truncate(limit);
            Ok(VisionResult { value, model: "fake/eyes".into() })
        })
    }

    fn describe(&self, _: Vec<u8>) -> BoxFuture<'_, Result<VisionResult<String>, SenseError>> {
        Box::pin(async move {
            Ok(VisionResult { value: self.state()?.answer, model: "fake/eyes".into() })
        })
    }
}

impl Embedder for Fake {
    fn space(&self) -> EmbeddingSpace {
        EmbeddingSpace { provider: "local".into(), model: "tiny".into(), dimensions: 2 }
    }

    fn ready(&self) -> Result<(), SenseError> {
        self.is_there()
    }

    fn embed(&self, _: Vec<String>) -> BoxFuture<'_, Result<Embeddings, SenseError>> {
        Box::pin(async move {
            let vectors = self.state()?.vectors;
            Ok(Embeddings { vectors, queue_wait_ms: 0.5, service_time_ms: 2.25 })
        })
    }
}

/// The time never changes.
struct FixedClock;

impl Clock for FixedClock {
    fn stamp(&self) -> Stamp {
        Stamp::new(self.now(), [1, 2])
    }

    fn now(&self) -> Time {
        Time::from_micros(1)
    }
}

struct Story {
    artifacts: ArtifactStore,
    _dir: TempDir,
    ocr: Arc<Fake>,
    vision: Arc<Fake>,
    embedder: Arc<Fake>,
    /// Names of artifacts, and their ids.
    named: Vec<(String, String)>,
    out: String,
}

impl Story {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let uploads = Arc::new(FileUploads::open(dir.path()).unwrap());
        let artifacts =
            ArtifactStore::for_test(memory::MemoryStore::new(), uploads, Arc::new(FixedClock));
        Self {
            artifacts,
            _dir: dir,
            ocr: Arc::default(),
            vision: Arc::default(),
            embedder: Arc::default(),
            named: Vec::new(),
            out: String::new(),
        }
    }

    async fn tell(mut self, script: &str) -> String {
        for line in script.lines().filter(|line| !line.starts_with("< ")) {
            writeln!(self.out, "{line}").unwrap();
            match line.get(..2) {
                Some("> ") => self.request(&line[2..]).await,
                Some("~ ") => self.front_end_data(&line[2..]).await,
                _ => {}
            }
        }
        self.out
    }

    async fn front_end_data(&mut self, line: &str) {
        let (what, rest) = line.split_once(' ').unwrap();
        let rows = || serde_json::from_str::<Vec<Value>>(rest).unwrap();
        match what {
            "ocr" => trouble(&self.ocr, "ocr", rest),
            "vision" => trouble(&self.vision, "vision", rest),
            "embedder" => trouble(&self.embedder, "embeddings", rest),
            "lines" => {
                self.ocr.state.lock().unwrap().lines = rows().iter().map(text_box).collect();
            }
            "targets" => {
                self.vision.state.lock().unwrap().targets = rows().iter().map(target).collect();
            }
            "answer" => rest.clone_into(&mut self.vision.state.lock().unwrap().answer),
            "vectors" => {
                let number = |number: &Value| number.as_f64().map_or(f32::NAN, |it| it as f32);
                let vector = |row: &Value| row.as_array().unwrap().iter().map(number).collect();
                self.embedder.state.lock().unwrap().vectors = rows().iter().map(vector).collect();
            }
            "upload" => self.upload(rest).await,
            other => panic!("{other}"),
        }
    }

    async fn upload(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let user = words.iter().find_map(|word| word.strip_prefix('@')).map(user);
        let png = picture(words[words.len() - 1]);
        let kept = self.artifacts.keep_bytes(user.as_ref(), png).await.unwrap().unwrap();
        self.named.push((format!("${}", words[0]), kept.id));
    }

    async fn request(&mut self, line: &str) {
        let (method, rest) = line.split_once(' ').unwrap();
        let (path, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (user, body) = match rest.strip_prefix('@') {
            Some(rest) => {
                rest.split_once(' ').map(|(name, body)| (Some(user(name)), body)).unwrap()
            }
            None => (None, rest),
        };
        let (key, body) = match body.strip_prefix("key=") {
            Some(rest) => rest.split_once(' ').unwrap(),
            None => ("", body),
        };
        let mut body = body.to_owned();
        for (name, id) in &self.named {
            body = body.replace(name, id);
        }
        while let Some(at) = body.find("$PNG:") {
            let size: String =
                body[at + 5..].chars().take_while(|c| c.is_ascii_digit() || *c == 'x').collect();
            body.replace_range(at..at + 5 + size.len(), &STANDARD.encode(picture(&size)));
        }
        let request = axum::http::Request::builder().method(method).uri(path).extension(user);
        let request = request.header("host", "host").header("x-windie-embedding-key", key);
        let request = request.body(Body::from(body)).unwrap();
        let router = routed(routes().into_iter()).with_state(self.senses());
        let response = router.oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let mut text = String::from_utf8(body.to_vec()).unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        for kept in [&answer, &answer["overlay"]] {
            if let Some(id) = kept["artifact_id"].as_str() {
                let overlay = self.artifacts.uploads.part(id, 0, 1 << 20).await.unwrap();
                let marked = image::load_from_memory(&overlay).unwrap().into_rgb8();
                let size = format!("{}x{}", marked.width(), marked.height());
                let (sha256, bytes) = (kept["sha256"].as_str().unwrap(), &kept["size_bytes"]);
                text = text.replace(id, &format!("<{size}>.png")).replace(sha256, "<sha256>");
                text = text.replace(&format!("\"size_bytes\":{bytes}"), "\"size_bytes\":<size>");
            }
        }
        self.name_rows(&text);
        for (name, id) in &self.named {
            text = text.replace(id, name);
        }
        writeln!(self.out, "< {status} {text}").unwrap();
    }

    /// Gives ids of rows names, because they change with the ids of artifacts.
    fn name_rows(&mut self, text: &str) {
        for (at, _) in text.match_indices("ocr_") {
            let Some(id) = text.get(at..at + 16) else { continue };
            let known = self.named.iter().any(|(_, named)| named == id);
            if id[4..].bytes().all(|byte| byte.is_ascii_hexdigit()) && !known {
                let rows = self.named.iter().filter(|(name, _)| name.starts_with("$c")).count();
                self.named.push((format!("$c{}", rows + 1), id.to_owned()));
            }
        }
    }

    fn senses(&self) -> Senses {
        Senses {
            ocr: self.ocr.clone(),
            vision: self.vision.clone(),
            embedder: self.embedder.clone(),
            artifacts: self.artifacts.clone(),
            embedding_key: Some(Token::new("key")),
            size_limit: 1 << 20,
        }
    }
}

fn user(name: &str) -> User {
    User { id: name.into(), install: format!("install of {name}") }
}

fn trouble(sense: &Fake, name: &'static str, word: &str) {
    sense.state.lock().unwrap().trouble = match word {
        "ready" => None,
        "off" => Some(SenseError::Off(name)),
        "missing" => Some(SenseError::MissingWeights(name)),
        "busy" => Some(SenseError::Busy),
        "failed" => Some(SenseError::Failed("the model broke".into())),
        other => panic!("{other}"),
    };
}

fn text_box(row: &Value) -> TextBox {
    let number = |at: usize| u32::try_from(row[at].as_u64().unwrap()).unwrap();
    TextBox {
        text: row[0].as_str().unwrap().into(),
        confidence: 0.99,
        x: number(1),
        y: number(2),
        width: number(3),
        height: number(4),
    }
}

fn target(row: &Value) -> VisualTarget {
    let number = |at: usize| u32::try_from(row[at].as_u64().unwrap()).unwrap();
    VisualTarget {
        x: number(0),
        y: number(1),
        label: row[2].as_str().map(String::from),
        confidence: row[3].as_f64().map(|confidence| confidence as f32),
    }
}

/// A white picture of a size like `40x20`, as PNG.
fn picture(size: &str) -> Vec<u8> {
    let (width, height) = size.split_once('x').unwrap();
    let white = Rgb([255, 255, 255]);
    let image = RgbImage::from_pixel(width.parse().unwrap(), height.parse().unwrap(), white);
    encode_png(&DynamicImage::ImageRgb8(image)).unwrap()
}
