//! Golden files of every family: `tests/golden/FAMILY/*.sse` are answers as received, the `.txt`
//! next to each is the parsed result, and `request*.json` are requests for one conversation.
//! `UPDATE_GOLDEN=1` rewrites the derived files, and the difference is the review.

mod conversation;
mod cost;
mod requests;
mod streams;

use std::path::{Path, PathBuf};

use crate::config::Api;
use crate::family::{self, Family};

/// Every family with the name of its folder.
fn families() -> Vec<(&'static str, &'static dyn Family)> {
    let named = |api: Api| Some((folder(api)?, family::of(api)?));
    Api::ALL.into_iter().filter_map(named).collect()
}

fn folder(api: Api) -> Option<&'static str> {
    match api {
        Api::OpenAiChat => Some("openai_chat"),
        Api::OpenAiResponses => Some("openai_responses"),
        Api::Anthropic => Some("anthropic"),
        Api::Gemini => Some("gemini"),
        Api::Demo => None,
    }
}

fn path(family: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(family)
}

/// Compares with a file, or writes it.
#[track_caller]
fn check(file: &Path, today: &str) {
    #[expect(clippy::disallowed_methods, reason = "tests read the environment themselves")]
    let updating = std::env::var("UPDATE_GOLDEN").is_ok();
    if updating {
        std::fs::write(file, today).unwrap();
    }
    let known = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(today, known, "{}", file.display());
}
