//! `diagram`: a drawing of a source, or the workspace's own drawings.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, OutputFile, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, CallSubject, Ending, Outcome, Risk, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::diagram::{DiagramLanguage, graphviz, mermaid};
use crate::run::{Job, Runner, TIMEOUT, output};
use crate::{blocking, input, makefile, risk, show};

/// The longest source; a larger picture would not be readable.
const SOURCE_LIMIT: usize = 32 * 1024;
const TARGET: &str = "diagrams";
const COMMAND: &str = "make diagrams";
const NONE: &str = "nothing to draw: no source was given, and the workspace has no Makefile with a \
                    diagrams target";

/// The tool.
pub(crate) struct Diagram {
    spec: Arc<ToolSpec>,
    runner: Arc<Runner>,
}

#[derive(Debug, Deserialize)]
struct Input {
    source: Option<String>,
    language: Option<String>,
    name: Option<String>,
}

impl Input {
    fn file(&self) -> String {
        let name = self.name.as_deref().unwrap_or("diagram");
        format!("{}.svg", name.strip_suffix(".svg").unwrap_or(name))
    }
}

/// The work of a call.
enum Work {
    Draw { source: String, language: DiagramLanguage, file: String },
    Make,
    Nothing,
}

impl Work {
    async fn of(call: &Invocation) -> Result<Self, String> {
        let input: Input = input::parse(&call.input)?;
        if let Some(source) = &input.source {
            let language = DiagramLanguage::of(input.language.as_deref(), source);
            return Ok(Self::Draw { source: source.clone(), language, file: input.file() });
        }
        let workspace = call.workspace.clone();
        let has = blocking::run_to_end(move || Ok(makefile::has(&workspace, TARGET))).await?;
        Ok(if has { Self::Make } else { Self::Nothing })
    }
}

impl Diagram {
    pub(crate) fn new(runner: Arc<Runner>) -> Self {
        let description = "Draw a diagram as SVG and keep it as an artifact, from Mermaid \
                           (flowchart, sequence, class, state, ER, gantt and others) or Graphviz. Without \
                           a source, run `make diagrams` in the workspace."
            .to_owned();
        let properties = json!({
            "source": {
                "type": "string",
                "minLength": 1,
                "maxLength": SOURCE_LIMIT,
                "description": "The text of the diagram",
            },
            "language": {
                "enum": ["mermaid", "graphviz", "dot"],
                "description": "What it is written in; by default what it looks like",
            },
            "name": {
                "type": "string",
                "pattern": "^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$",
                "description": "Name of the file, without its ending; default `diagram`",
            },
        });
        let spec = super::spec(ToolKind::Exec, "diagram", description, properties, &[]);
        Self { spec, runner }
    }

    async fn start(&self, call: &Invocation, context: &ToolContext) -> Result<ToolOutput, String> {
        match Work::of(call).await? {
            Work::Nothing => Ok(Outcome::idle(NONE).into()),
            Work::Make => self.make(call, context).await,
            Work::Draw { source, language, file } => {
                let drawn = match language {
                    DiagramLanguage::Graphviz => {
                        graphviz::draw(&self.runner, &call.workspace, context, &source).await?
                    }
                    DiagramLanguage::Mermaid => {
                        mermaid::draw(&self.runner, context, &source).await?
                    }
                };
                Ok(kept(drawn, file))
            }
        }
    }

    async fn make(&self, call: &Invocation, context: &ToolContext) -> Result<ToolOutput, String> {
        let job = Job { command: COMMAND, workspace: &call.workspace, timeout: TIMEOUT };
        let finished = self.runner.run(job, context).await.map_err(|error| error.to_string())?;
        let (report, error) = (finished.report(), finished.error());
        Ok(output(finished.ending(), &report, error, finished.files()))
    }
}

fn kept(drawn: Option<String>, name: String) -> ToolOutput {
    let Some(picture) = drawn else {
        return Outcome::ended(Ending::Cancelled, "cancelled").into();
    };
    let outcome = Outcome::success(format!("drew {name}, {} bytes", picture.len()));
    let mime = "image/svg+xml".to_owned();
    ToolOutput::with_files(outcome, vec![OutputFile { name, mime, content: picture.into_bytes() }])
}

fn assess(source: &str) -> Assessment {
    Assessment {
        risk: Risk::Low,
        reasons: vec!["draws a picture and changes no file".to_owned()],
        reversible: true,
        preview: show::preview(source),
        subject: CallSubject::default(),
        settled: None,
    }
}

impl Tool for Diagram {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            match Work::of(call).await {
                Ok(Work::Draw { source, .. }) => assess(&source),
                Ok(Work::Make) => risk::assess(&call.workspace, &[COMMAND.to_owned()]),
                Ok(Work::Nothing) => super::settled(Outcome::idle(NONE)),
                Err(why) => super::nothing_will_run(why),
            }
        })
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move { blocking::output_of(self.start(&call, &context).await) })
    }
}
