//! Converts the output of a provider's model into progress.

use quintet_kernel::model::{Chunk, Failure, ModelResponse, RawToolCall, Usage};

use crate::openai::encode::{End, EndReason, Progress, ToolCall};

/// Converts the chunks of a model stream.
pub(crate) fn progress(chunks: Result<Vec<Chunk>, Failure>) -> Vec<Progress> {
    match chunks {
        Ok(chunks) => chunks.into_iter().flat_map(chunk).collect(),
        Err(failure) => {
            let (reason, usage) = (EndReason::Failed(failure.into()), Usage::default());
            vec![
                Progress::StepEnded { complete: false },
                Progress::End(End { reason, usage, at: None }),
            ]
        }
    }
}

fn chunk(chunk: Chunk) -> Vec<Progress> {
    match chunk {
        Chunk::Output(_, text) if text.is_empty() => Vec::new(),
        Chunk::Output(channel, text) => vec![Progress::Output(channel, text.into())],
        Chunk::Retrying { .. } => Vec::new(),
        Chunk::Finished(ModelResponse { finish, calls, usage, .. }) => {
            let calls =
                calls.into_iter().enumerate().map(|(n, call)| Progress::Call(tool_call(n, call)));
            let end = Progress::End(End { reason: EndReason::Finished(finish), usage, at: None });
            [Progress::StepEnded { complete: true }].into_iter().chain(calls).chain([end]).collect()
        }
    }
}

/// Converts a call; a call without an id is numbered.
fn tool_call(n: usize, RawToolCall { id, tool, arguments }: RawToolCall) -> ToolCall {
    let id = if id.is_empty() { format!("call_{n}") } else { id };
    ToolCall { id, tool, arguments }
}
