//! What a provider's model writes, as progress of an answer.

use quintet_kernel::model::{Chunk, Failure, ModelResponse, RawToolCall, Usage};

use crate::openai::encode::{End, Ended, Progress, ToolCall};

/// Translates the chunks of a model stream.
pub(crate) fn progress(chunks: Result<Vec<Chunk>, Failure>) -> Vec<Progress> {
    match chunks {
        Ok(chunks) => chunks.into_iter().flat_map(chunk).collect(),
        Err(failure) => {
            let (how, usage) = (Ended::Failed(failure.into()), Usage::default());
            vec![Progress::StepOver { whole: false }, Progress::End(End { how, usage, at: None })]
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
                calls.into_iter().enumerate().map(|(n, call)| Progress::Call(called(n, call)));
            let end = Progress::End(End { how: Ended::Finished(finish), usage, at: None });
            [Progress::StepOver { whole: true }].into_iter().chain(calls).chain([end]).collect()
        }
    }
}

/// A call; one that its model gave no id is numbered.
fn called(n: usize, RawToolCall { id, tool, arguments }: RawToolCall) -> ToolCall {
    let id = if id.is_empty() { format!("call_{n}") } else { id };
    ToolCall { id, tool, arguments }
}
