//! Questions of servers to the user: in the words of the kernel, and the answer in those of the protocol.
//!
//! A server of the earlier era asks on its own, without naming the call that it asks for (see
//! [`super::running_calls`]); a later one answers the call with what it wants to know first.

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, CancelSignal};
use quintet_kernel::question::{Question, QuestionAnswer, QuestionForm};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputResponses,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::running_calls::RunningCall;

/// The longest text of a question, in bytes.
const MESSAGE_LIMIT: usize = 8 * 1024;
/// The largest form, in bytes of its schema.
const SCHEMA_LIMIT: usize = 64 * 1024;

impl RunningCall {
    /// Puts a server's question to the user, until the server takes it back.
    pub(super) async fn ask(
        &self,
        server: &str,
        asked: ElicitRequestParams,
        withdrawn: CancellationToken,
    ) -> ElicitResult {
        let question = match question(server, asked) {
            Ok(question) => question,
            Err(why) => {
                self.context
                    .progress
                    .report(&format!("a question of {server} is declined: {why}\n"));
                return ElicitResult::new(ElicitationAction::Decline);
            }
        };
        self.timer.asked();
        let answer = self.context.questions.ask(question, Arc::new(Withdrawn(withdrawn))).await;
        self.timer.answered();
        result(answer)
    }

    /// The answers to all that a server wants to know before it goes on. Fails if that is something
    /// else than questions to the user.
    pub(super) async fn responses(
        &self,
        server: &str,
        wanted: InputRequests,
    ) -> Result<InputResponses, String> {
        let mut responses = InputResponses::new();
        for (key, request) in wanted {
            let InputRequest::Elicitation(request) = request else {
                return Err("the server asks for input that is not supported".to_owned());
            };
            let answer = self.ask(server, request.params, CancellationToken::new()).await;
            responses.insert(key, serde_json::to_value(answer).unwrap_or(Value::Null));
        }
        Ok(responses)
    }
}

/// A server's question. Fails with the reason why nobody is asked it.
fn question(server: &str, asked: ElicitRequestParams) -> Result<Question, String> {
    let (message, form) = match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = serde_json::to_value(requested_schema).map_err(|why| why.to_string())?;
            if schema.to_string().len() > SCHEMA_LIMIT {
                return Err("its form is too large".to_owned());
            }
            (message, QuestionForm::Schema(schema))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let address = reqwest::Url::parse(&url).map_err(|why| format!("{url:?}: {why}"))?;
            if !matches!(address.scheme(), "http" | "https") {
                return Err(format!("{url:?} is not a web address"));
            }
            (message, QuestionForm::Url(address.into()))
        }
        _ => return Err("it is of a kind that is not known".to_owned()),
    };
    if message.len() > MESSAGE_LIMIT {
        return Err("it is too long".to_owned());
    }
    Ok(Question { asker: format!("the MCP server {server}"), message, form })
}

fn result(answer: QuestionAnswer) -> ElicitResult {
    match answer {
        QuestionAnswer::Accepted { content } => {
            ElicitResult::new(ElicitationAction::Accept).with_content(content.into())
        }
        QuestionAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
        QuestionAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// The server needs no answer any more.
struct Withdrawn(CancellationToken);

impl CancelSignal for Withdrawn {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.cancelled())
    }
}

#[cfg(test)]
mod tests;
