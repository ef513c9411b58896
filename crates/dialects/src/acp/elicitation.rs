//! Questions of running calls: a form or a link for editors that can show them. Other editors get a
//! permission request with the possible answers (`permission`).

use quintet_kernel::command::Approve;
use quintet_kernel::event::{ApprovalDecision, DecidedBy, RememberScope};
use quintet_kernel::question::{Question, QuestionForm};
use quintet_kernel::{ApprovalId, SessionId};
use serde_json::{Value, json};

use super::decode::Client;
use super::permission::OpenQuestion;

/// True if the editor can show this question as a form or link.
pub(super) fn is_shown_by(client: &Client, question: &Question) -> bool {
    match question.form {
        QuestionForm::Schema(_) => client.forms,
        QuestionForm::Url(_) => client.links,
    }
}

/// The parameters of an elicitation request; `None` if the editor cannot show the question.
pub(super) fn params(open: &OpenQuestion, client: &Client, session: &SessionId) -> Option<Value> {
    let question = question(open).filter(|question| is_shown_by(client, question))?;
    let mut params = json!({ "sessionId": session.as_str(), "message": question.message });
    match question.form {
        QuestionForm::Schema(schema) => {
            params["mode"] = "form".into();
            params["requestedSchema"] = schema;
        }
        QuestionForm::Url(url) => {
            params["mode"] = "url".into();
            params["elicitationId"] = open.question.as_str().into();
            params["url"] = url.into();
        }
    }
    Some(params)
}

/// The question, if a running call asks it.
pub(super) fn question(open: &OpenQuestion) -> Option<Question> {
    match open.question {
        ApprovalId::Question(_) => Question::from_input(&open.input),
        ApprovalId::Call(_) | ApprovalId::Turn(_) => None,
    }
}

/// The command for the editor's response. Anything but a clear acceptance is a denial.
pub(super) fn answered(open: &OpenQuestion, result: &Value) -> Approve {
    let (answer, reason) = match result["action"].as_str() {
        Some("accept") => (ApprovalDecision::Allow, None),
        Some("decline") => (ApprovalDecision::Deny, None),
        Some(_) | None => (ApprovalDecision::Deny, Some("the question was dismissed".to_owned())),
    };
    Approve {
        question: open.question.clone(),
        turn: None,
        answer,
        reason,
        by: DecidedBy::Client,
        remember: RememberScope::Once,
        content: result.get("content").cloned(),
    }
}
