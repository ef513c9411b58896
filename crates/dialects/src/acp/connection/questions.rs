//! Permission requests to the editor, and its answers.

use std::path::Path;

use quintet_kernel::command::Command;
use quintet_kernel::port::Error as PortError;
use quintet_kernel::{ApprovalId, Refusal, SessionId};
use serde_json::{Value, json};

use super::super::permission::OpenQuestion;
use super::super::{diff, elicitation, wire};
use super::{Connection, Gone};
use crate::jsonrpc::{self, Error, Id};

/// A question that was sent to the editor.
pub(super) struct SentQuestion {
    request: u64,
    session: SessionId,
    open: OpenQuestion,
    method: &'static str,
}

impl SentQuestion {
    pub(super) fn belongs_to(&self, session: &SessionId) -> bool {
        self.session == *session
    }
}

impl Connection {
    /// The request for the user's answer to a question.
    pub(super) async fn ask(&mut self, which: usize, open: OpenQuestion) -> String {
        let encoder = &self.sessions[which].encoder;
        let (session, workspace) = (encoder.session().clone(), encoder.workspace().clone());
        let elicitation = elicitation::params(&open, encoder.client(), &session);
        let method = match elicitation {
            Some(_) => wire::CREATE_ELICITATION,
            None => wire::REQUEST_PERMISSION,
        };
        let params = match elicitation {
            Some(params) => params,
            None => open.params(&session, &workspace, diffs(&workspace, &open).await),
        };
        let request = self.next_request;
        self.next_request += 1;
        self.questions.push(SentQuestion { request, session, open, method });
        jsonrpc::request(request, method, params)
    }

    /// Drops a question that was answered elsewhere or is no longer needed.
    pub(super) fn withdraw_question(
        &mut self,
        session: &SessionId,
        question: &ApprovalId,
    ) -> Option<String> {
        let is_it =
            |sent: &SentQuestion| sent.session == *session && sent.open.question == *question;
        let sent = self.questions.remove(self.questions.iter().position(is_it)?);
        let params = json!({ "requestId": sent.request });
        Some(jsonrpc::notification(wire::CANCEL_REQUEST, params))
    }

    /// Handles the editor's response to a request of the daemon.
    pub(super) async fn answered(
        &mut self,
        id: &Id,
        outcome: Result<Value, Error>,
    ) -> Result<(), Gone> {
        let Id::Number(number) = id else { return Ok(()) };
        let Some(number) = number.as_u64() else { return Ok(()) };
        if self.files.answered(number, &outcome) {
            return Ok(());
        }
        let is_it = |sent: &SentQuestion| sent.request == number;
        // An answer to a closed question is ignored.
        let Some(at) = self.questions.iter().position(is_it) else { return Ok(()) };
        let SentQuestion { session, open, method, .. } = self.questions.remove(at);
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.could_not_ask(&session, &open, &error).await,
        };
        let command = Command::Approve(match method {
            wire::CREATE_ELICITATION => elicitation::answered(&open, &outcome),
            _ => open.answered(&outcome),
        });
        match self.app.services.sessions.submit(&session, command).await {
            Ok(_) => {}
            // Another client was faster, or the turn was cancelled meanwhile.
            Err(PortError::Refused(
                Refusal::NothingPending(_) | Refusal::NotPending(_) | Refusal::QuestionClosed(_),
            )) => {}
            // The question is still open, so it is asked again.
            Err(PortError::Refused(Refusal::InvalidAnswer(why))) => {
                return self.ask_again(&session, open, &why).await;
            }
            Err(error) => tracing::warn!(%session, %error, "submitting an answer failed"),
        }
        Ok(())
    }

    /// Sends a question again whose answer was invalid.
    async fn ask_again(
        &mut self,
        session: &SessionId,
        mut open: OpenQuestion,
        why: &str,
    ) -> Result<(), Gone> {
        let Some(which) = self.position(session) else { return Ok(()) };
        if let Some(mut question) = elicitation::question(&open) {
            question.message = format!("{}\n({why})", question.message);
            open.input = question.as_input();
        }
        let request = self.ask(which, open).await;
        self.queue.send(&[request]).await
    }

    /// Shows the user where else to answer. The question stays open, because an error is neither approval
    /// nor denial.
    async fn could_not_ask(
        &mut self,
        session: &SessionId,
        open: &OpenQuestion,
        error: &Error,
    ) -> Result<(), Gone> {
        tracing::warn!(%session, error = error.message, "an editor could not ask for approval");
        let text = format!(
            "The editor could not ask for approval of {} ({}). Answer in another client, or cancel.",
            open.tool, error.message
        );
        let update = wire::chunk("agent_message_chunk", open.question.as_str(), wire::text(&text));
        self.queue.send(&[wire::update(session, &update)]).await
    }
}

/// The changes that a call would make, with the current content of files; empty if they are too long.
async fn diffs(workspace: &Path, open: &OpenQuestion) -> Vec<Value> {
    let (path, new) = (open.input["path"].as_str(), open.input["content"].as_str());
    if let ("write_file", Some(path), Some(new)) = (open.tool.as_str(), path, new) {
        let whole = workspace.join(path);
        let is_new = tokio::fs::symlink_metadata(&whole).await.is_err();
        let old = read(&whole).await;
        let shown = (is_new || old.is_some()) && new.len() <= diff::TEXT_LIMIT;
        return if shown {
            vec![diff::content(workspace, path, old.as_deref(), new)]
        } else {
            Vec::new()
        };
    }
    let files = diff::parse(&open.assessment.preview);
    if !files.iter().all(diff::FileDiff::is_whole) {
        return Vec::new();
    }
    let mut diffs = Vec::new();
    for file in files.iter().take(diff::FILES_LIMIT) {
        let current = read(&workspace.join(file.path)).await;
        let (old, new) = file.texts(current.as_deref());
        diffs.push(diff::content(workspace, file.path, old.as_deref(), &new));
    }
    diffs
}

/// A file that is text and not too long.
async fn read(path: &Path) -> Option<String> {
    let file = tokio::fs::metadata(path).await.ok()?;
    let short = file.is_file() && file.len() <= diff::TEXT_LIMIT as u64;
    if short { tokio::fs::read_to_string(path).await.ok() } else { None }
}
