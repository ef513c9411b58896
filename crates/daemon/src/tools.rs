//! `quintet tools`: lists the tools for models.

use std::io::Write as _;

use anyhow::Result;
use quintet_kernel::policy::Verdict;

use crate::assemble::{rules, toolbox};
use crate::cli::Flags;
use crate::options;
use crate::senses;

/// Prints one line per tool and, on request, its schema below it.
pub(crate) fn list(flags: &Flags, schema: bool) -> Result<()> {
    let options = options::read(flags)?;
    let mut stdout = std::io::stdout().lock();
    let toolbox = toolbox(&options, &senses::build(&options), None);
    let rules = rules(&options, &toolbox);
    for tool in toolbox.specs() {
        let verdict = match rules.verdict(&tool, None) {
            Verdict::Allow => "allowed",
            Verdict::Ask => "asks first",
            Verdict::Refuse(_) => "refused",
            Verdict::Assess => "by rule",
        };
        let kind = tool.kind.name();
        writeln!(stdout, "{:<13} {kind:<8} {verdict:<11} {}", tool.name, tool.description)?;
        if schema {
            writeln!(stdout, "{:#}", tool.schema)?;
        }
    }
    Ok(())
}
