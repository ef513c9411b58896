//! What this daemon cannot do yet: it says so, in the protocol's shape, to those who ask well.

use axum::extract::Request;
use axum::http::HeaderMap;
use serde_json::json;

use super::fields::Fields;
use super::reply::Reply;
use super::{body, text};
use crate::transport::access::Token;
use crate::windie::serve::Desk;

const LONGEST_TEXT: usize = 2000;
const LONGEST_CANDIDATE: usize = 128;
const LONGEST_LABEL: usize = 200;
const LONGEST_COLOR: usize = 32;
/// The most points, or regions, on one picture.
const MOST_MARKS: usize = 1000;
/// An inline image of the largest size, in base 64 and with what may stand before it.
const LONGEST_IMAGE: usize = 36 * 1024 * 1024;

/// A request about a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    OcrRun,
    OcrInspect,
    OcrFindText,
    OcrFindCandidates,
    OcrResolveText,
    OcrResolveCandidate,
    OcrOverlay,
    Locate,
    LocateAll,
    Describe,
    VisionOverlay,
}

impl Sight {
    /// What it is called in a path.
    pub(super) fn of(service: &str, name: &str) -> Option<Self> {
        match (service, name) {
            ("ocr", "run") => Some(Self::OcrRun),
            ("ocr", "inspect") => Some(Self::OcrInspect),
            ("ocr", "find-text") => Some(Self::OcrFindText),
            ("ocr", "find-text-candidates") => Some(Self::OcrFindCandidates),
            ("ocr", "resolve-text") => Some(Self::OcrResolveText),
            ("ocr", "resolve-candidate") => Some(Self::OcrResolveCandidate),
            ("ocr", "overlay") => Some(Self::OcrOverlay),
            ("vision", "locate") => Some(Self::Locate),
            ("vision", "locate-all") => Some(Self::LocateAll),
            ("vision", "describe") => Some(Self::Describe),
            ("vision", "overlay") => Some(Self::VisionOverlay),
            _ => None,
        }
    }

    fn service(self) -> &'static str {
        match self {
            Self::OcrRun
            | Self::OcrInspect
            | Self::OcrFindText
            | Self::OcrFindCandidates
            | Self::OcrResolveText
            | Self::OcrResolveCandidate
            | Self::OcrOverlay => "OCR service not available",
            Self::Locate | Self::LocateAll | Self::Describe | Self::VisionOverlay => {
                "Vision service not available"
            }
        }
    }
}

/// `POST /api/sdk/ocr/*` and `/api/sdk/vision/*`.
pub(super) async fn look(sight: Sight, request: Request) -> Reply {
    match body(request).await.and_then(|fields| check(sight, fields)) {
        Ok(()) => Reply::new(503, sight.service()),
        Err(reply) => reply,
    }
}

fn check(sight: Sight, mut fields: Fields) -> Result<(), Reply> {
    image(&mut fields);
    match sight {
        Sight::OcrRun => {}
        Sight::OcrInspect => {
            fields.maybe_text("text", 1..=LONGEST_TEXT);
            fields.maybe_number("threshold", 0.0..=1.0);
            results(&mut fields, 100);
            fields.maybe_flag("include_overlay");
            fields.maybe_flag("show_labels");
        }
        Sight::OcrFindText | Sight::OcrFindCandidates => {
            query(&mut fields);
            results(&mut fields, 100);
        }
        Sight::OcrResolveText => query(&mut fields),
        Sight::OcrResolveCandidate => {
            fields.text("candidate_id", 1..=LONGEST_CANDIDATE);
        }
        Sight::OcrOverlay => overlay(&mut fields),
        Sight::Locate => {
            fields.text("description", 1..=LONGEST_TEXT);
        }
        Sight::LocateAll => {
            fields.text("description", 1..=LONGEST_TEXT);
            results(&mut fields, 25);
        }
        Sight::Describe => fields.maybe_object("region", area),
        Sight::VisionOverlay => {
            marks(&mut fields);
            // Clients send what they were told of a picture back as it is.
            fields.maybe_object("result", marks);
            fields.maybe_flag("show_labels");
        }
    }
    fields.rest()
}

/// A picture that was handed in, or one that is handed in right here.
fn image(fields: &mut Fields) {
    fields.object("image", |image| {
        let artifact = image.maybe_text("artifact_id", 0..=LONGEST_LABEL);
        let inline = image.maybe_text("image_base64", 0..=LONGEST_IMAGE);
        if artifact.is_some() == inline.is_some() {
            let why = "Value error, exactly one of artifact_id or image_base64 is required";
            image.wrong(&[], "value_error", why);
        }
    });
}

fn query(fields: &mut Fields) {
    fields.text("text", 1..=LONGEST_TEXT);
    fields.maybe_number("threshold", 0.0..=1.0);
}

fn results(fields: &mut Fields, most: i64) {
    fields.maybe_integer("max_results", 1..=most);
}

fn overlay(fields: &mut Fields) {
    let text = fields.maybe_text("text", 1..=LONGEST_TEXT);
    let candidate = fields.maybe_text("candidate_id", 1..=LONGEST_CANDIDATE);
    if text.is_some() && candidate.is_some() {
        let why = "Value error, at most one of text or candidate_id may be given";
        fields.wrong(&[], "value_error", why);
    }
    fields.maybe_number("threshold", 0.0..=1.0);
    fields.maybe_flag("show_labels");
}

fn area(region: &mut Fields) {
    for side in ["x", "y"] {
        region.integer(side, 0..=i64::MAX);
    }
    for side in ["width", "height"] {
        region.integer(side, 1..=i64::MAX);
    }
}

/// What is to be drawn on a picture.
fn marks(fields: &mut Fields) {
    fields.maybe_objects("points", MOST_MARKS, |point| spot(point, &["x", "y"]));
    fields.maybe_objects("regions", MOST_MARKS, |region| {
        spot(region, &["x", "y", "width", "height"]);
    });
}

/// A mark on a picture.
fn spot(mark: &mut Fields, sides: &[&str]) {
    for side in sides {
        mark.integer(side, 0..=i64::MAX);
    }
    mark.maybe_text("label", 0..=LONGEST_LABEL);
    if let Some(color) = mark.maybe_text("color", 0..=LONGEST_COLOR)
        && !is_color(&color)
    {
        let why = "Value error, color must be like #1677ff";
        mark.wrong(&[json!("color")], "value_error", why);
    }
}

fn is_color(color: &str) -> bool {
    let digits = color.strip_prefix('#').unwrap_or_default();
    digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

const NO_EMBEDDINGS: &str = "Embedding service not available";

/// `GET /api/embeddings/health`.
pub(super) fn embeddings_health() -> Reply {
    Reply::new(503, NO_EMBEDDINGS)
}

/// `POST /api/embeddings/`.
pub(super) async fn embeddings(request: Request) -> Reply {
    let asked = async {
        let mut fields = body(request).await?;
        fields.text("text", 1..=8192);
        fields.maybe_text("model_name", 1..=128);
        fields.rest()
    };
    asked.await.err().unwrap_or_else(|| Reply::new(503, NO_EMBEDDINGS))
}

/// `POST /embed`, which is for other services and needs their key.
pub(super) async fn embed(desk: &Desk, request: Request) -> Reply {
    let asked = async {
        let key = &desk.settings.embedding_key;
        opened(key.as_ref(), request.headers(), &EMBEDDINGS)?;
        let mut fields = body(request).await?;
        let texts = fields.texts("texts", 1..=256, &(0..=8192));
        if texts.iter().map(|text| text.chars().count()).sum::<usize>() > 65_536 {
            let why = "Value error, the texts may have at most 65536 characters together";
            fields.wrong(&[json!("texts")], "value_error", why);
        }
        fields.rest()
    };
    asked.await.err().unwrap_or_else(|| Reply::new(503, NO_EMBEDDINGS))
}

/// What a key opens: the header that it comes in, and what is said without it.
pub(super) struct Lock {
    header: &'static str,
    shut: &'static str,
    wrong: &'static str,
}

pub(super) const RUNS: Lock = Lock {
    header: "x-windie-runs-key",
    shut: "Runs API key is not configured",
    wrong: "Invalid runs API key",
};
const EMBEDDINGS: Lock = Lock {
    header: "x-windie-embedding-key",
    shut: "Embedding service API key is not configured",
    wrong: "Invalid embedding service API key",
};

/// Whether a key opens something. What has no key is shut to everybody.
pub(super) fn opened(key: Option<&Token>, headers: &HeaderMap, lock: &Lock) -> Result<(), Reply> {
    let key = key.ok_or_else(|| Reply::new(503, lock.shut))?;
    match key.matches(text(headers, lock.header).unwrap_or_default()) {
        true => Ok(()),
        false => Err(Reply::new(401, lock.wrong)),
    }
}
