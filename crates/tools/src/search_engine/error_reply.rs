//! Describes error responses of a search engine.

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::{SearchApi, brave};

/// The most characters of a server's message that are repeated.
const MESSAGE_LIMIT: usize = 300;

/// What a refusal means, for the model and for people.
pub(super) fn words(
    api: SearchApi,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> String {
    let fault = (api == SearchApi::Brave).then(|| brave::fault(body)).flatten();
    let code = fault.as_ref().and_then(|fault| fault.code.as_deref()).unwrap_or_default();
    let said = fault.as_ref().and_then(|fault| fault.detail.as_deref()).map_or(String::new(), said);
    match status.as_u16() {
        429 => {
            let wait = wait(headers).map_or(String::new(), |time| format!("; try again in {time}"));
            format!("the search server has had too many requests for now{said}{wait}")
        }
        _ if code == "SUBSCRIPTION_TOKEN_INVALID" => {
            format!("the search server does not take the key of this daemon{said}")
        }
        401 => format!("the search server wants a key, or another one{said}"),
        403 if api == SearchApi::Searxng => {
            "the search server refuses: `search.formats` of its settings.yml must name json, or it \
             does not let this machine in"
                .to_owned()
        }
        _ => format!("the search server says {status}{said}"),
    }
}

fn said(detail: &str) -> String {
    let detail = detail.trim().trim_end_matches('.');
    format!(": {}", &detail[..detail.floor_char_boundary(MESSAGE_LIMIT)])
}

/// How long to wait: until the last of the limits that are used up begins anew.
fn wait(headers: &HeaderMap) -> Option<String> {
    let list = |name: &str| {
        let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(',').map(|number| number.trim().parse().ok()).collect::<Vec<Option<u64>>>()
    };
    let (left, resets) = (list("x-ratelimit-remaining"), list("x-ratelimit-reset"));
    let used =
        left.iter().zip(resets).filter_map(|(left, reset)| reset.filter(|_| *left == Some(0)));
    let after = || list(RETRY_AFTER.as_str()).first().copied().flatten();
    used.max().or_else(after).map(time)
}

fn time(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        7200..=172_799 => format!("{} hours", seconds.div_ceil(3600)),
        _ => format!("{} days", seconds.div_ceil(86_400)),
    }
}
