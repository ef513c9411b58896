//! `fetch_url`: a page of the web, as text.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, CallSubject, Ending, Outcome, Risk, ToolKind, ToolSpec};
use reqwest::Url;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::fetch::{self, FetchPolicy, MOST_BYTES, Request};
use crate::{blocking, input};

/// How long a call may take, all redirects included.
const TIMEOUT: Duration = Duration::from_secs(30);
const URL_LIMIT: usize = 8 * 1024;

/// The tool.
pub(crate) struct FetchUrl {
    spec: Arc<ToolSpec>,
    reach: FetchPolicy,
}

#[derive(Debug, Deserialize)]
struct Input {
    url: String,
    max_bytes: Option<usize>,
    raw: Option<bool>,
}

impl FetchUrl {
    pub(crate) fn new(reach: FetchPolicy) -> Self {
        let description = "Fetch a web page or file of text by its URL. HTML is given as readable \
                           text with its links, JSON and other texts as they are. Only public \
                           servers, by GET, without cookies."
            .to_owned();
        let properties = json!({
            "url": {
                "type": "string",
                "maxLength": URL_LIMIT,
                "description": "An http or https URL",
            },
            "max_bytes": {
                "type": "integer",
                "minimum": 0,
                "maximum": MOST_BYTES,
                "description": format!(
                    "How much of the body to read; default {MOST_BYTES}; 0 asks for the status and \
                     type alone"
                ),
            },
            "raw": {
                "type": "boolean",
                "description": "Whether to give HTML as its source; default false",
            },
        });
        let spec = super::spec(ToolKind::Network, "fetch_url", description, properties, &["url"]);
        Self { spec, reach }
    }

    /// The request of a call, if it is allowed, and whether the raw source is wanted.
    fn request(&self, call: &Invocation) -> Result<(Request, bool), String> {
        let input: Input = input::parse(&call.input)?;
        let url = Url::parse(input.url.trim());
        let url = url.map_err(|error| format!("invalid input: /url: {error}"))?;
        self.reach.check(&url)?;
        let most = input.max_bytes.unwrap_or(MOST_BYTES);
        Ok((Request { url, most }, input.raw.unwrap_or(false)))
    }

    async fn fetch(&self, call: &Invocation, context: &ToolContext) -> Result<ToolOutput, String> {
        let (request, raw) = self.request(call)?;
        let page = tokio::select! {
            page = fetch::fetch(&self.reach, request, &*context.progress) => page?,
            () = context.cancel.cancelled() => {
                return Ok(Outcome::ended(Ending::Cancelled, "cancelled").into());
            }
        };
        Ok(blocking::run_cancellable(context, move |flag| Ok(page.output(raw, flag))).await)
    }
}

impl Tool for FetchUrl {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let assessment = match self.request(call) {
            Ok((request, _)) => assess(&request),
            Err(why) => super::nothing_will_run(why),
        };
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let fetched = timeout(TIMEOUT, self.fetch(&call, &context)).await;
            let late = || Err(format!("timed out after {}s", TIMEOUT.as_secs()));
            blocking::output_of(fetched.unwrap_or_else(|_| late()))
        })
    }
}

fn assess(request: &Request) -> Assessment {
    let host = request.url.host_str().unwrap_or_default();
    Assessment {
        risk: Risk::Medium,
        reasons: vec![
            format!("asks {host} over the network"),
            "whatever the URL holds leaves this machine".to_owned(),
        ],
        reversible: false,
        preview: request.line(),
        subject: CallSubject {
            similar: Some(format!("requests to {host}")),
            ..CallSubject::default()
        },
        settled: None,
    }
}
