//! `web_search`: searches the web.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, CallSubject, Ending, Outcome, Risk, ToolKind, ToolSpec};
use quintet_kernel::web_search::{WEB_SEARCH, WEB_SEARCH_DESCRIPTION};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use crate::search_engine::SearchEngine;
use crate::{blocking, input, show};

/// How long a search may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// No engine takes more.
const QUERY_LIMIT: usize = 400;
const DEFAULT_COUNT: usize = 8;
const RESULTS_LIMIT: usize = 20;

/// The tool.
pub(crate) struct WebSearch {
    spec: Arc<ToolSpec>,
    engine: SearchEngine,
}

#[derive(Debug, Deserialize)]
struct Input {
    query: String,
    count: Option<usize>,
}

impl WebSearch {
    pub(crate) fn new(engine: SearchEngine) -> Self {
        let description = WEB_SEARCH_DESCRIPTION.to_owned();
        let properties = json!({
            "query": {
                "type": "string",
                "minLength": 1,
                "maxLength": QUERY_LIMIT,
                "description": "What to look for, in a few words",
            },
            "count": {
                "type": "integer",
                "minimum": 1,
                "maximum": RESULTS_LIMIT,
                "description": format!("How many results to give; default {DEFAULT_COUNT}"),
            },
            "explanation": {
                "type": "string",
                "description": "Why this is searched for, for the person who watches",
            },
        });
        let spec = super::spec(ToolKind::Network, WEB_SEARCH, description, properties, &["query"]);
        Self { spec, engine }
    }

    async fn search(&self, call: &Invocation, context: &ToolContext) -> Result<ToolOutput, String> {
        let (query, count) = asked(call)?;
        context.progress.report(&format!("{}\n", self.line(&query)));
        tokio::select! {
            found = self.engine.search(&query, count) => Ok(show::output(&found?, "results.txt")),
            () = context.cancel.cancelled() => {
                Ok(Outcome::ended(Ending::Cancelled, "cancelled").into())
            }
        }
    }

    /// The search as people read it.
    fn line(&self, query: &str) -> String {
        format!("search {} for {query:?}", self.engine.host())
    }

    fn assessment(&self, query: &str) -> Assessment {
        let host = self.engine.host();
        Assessment {
            risk: Risk::Medium,
            reasons: vec![
                format!("asks {host} over the network"),
                "whatever the query holds leaves this machine".to_owned(),
            ],
            reversible: false,
            preview: self.line(query),
            subject: CallSubject {
                similar: Some(format!("searches by {host}")),
                ..CallSubject::default()
            },
            settled: None,
        }
    }
}

impl Tool for WebSearch {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let assessment = match asked(call) {
            Ok((query, _)) => self.assessment(&query),
            Err(why) => super::nothing_will_run(why),
        };
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            let searched = timeout(TIMEOUT, self.search(&call, &context)).await;
            let late = || Err(format!("timed out after {}s", TIMEOUT.as_secs()));
            blocking::output_of(searched.unwrap_or_else(|_| late()))
        })
    }
}

/// What is searched for, and how many results are wanted.
fn asked(call: &Invocation) -> Result<(String, usize), String> {
    let input: Input = input::parse(&call.input)?;
    let query = input.query.trim();
    if query.is_empty() {
        return Err("invalid input: /query is empty".to_owned());
    }
    Ok((query.to_owned(), input.count.unwrap_or(DEFAULT_COUNT)))
}
