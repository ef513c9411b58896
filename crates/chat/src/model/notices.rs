//! Applies the daemon's notifications.

use super::{Model, OpenApproval, Running};
use crate::notice::{Figures, Notice, Token};
use crate::wire::Request;

impl Model {
    pub(super) fn notice(&mut self, notice: Notice) -> Vec<Request> {
        match notice {
            Notice::Tokens { query, tokens } => {
                let running = self.running(&query);
                for token in &tokens {
                    count(running, token);
                }
                for token in tokens {
                    self.transcript.token(&token.text, token.fenced);
                }
            }
            Notice::Block { block, .. } => self.transcript.block(block),
            Notice::Complete { query, status, figures } => {
                return self.complete(&query, &status, figures);
            }
            Notice::Failed { message, .. } => {
                if !self.transcript.ends_in_error(&message) {
                    self.transcript.add_error(message);
                }
            }
            Notice::Approval(request) => {
                self.running(&request.query).doing = format!("{} waits for approval", request.tool);
                self.chat.approvals.push_back(OpenApproval::new(*request));
            }
            Notice::Progress { execution, status, message } => {
                // Another client may have answered, or the request expired.
                if matches!(status.as_str(), "approved" | "denied" | "cancelled") {
                    self.chat.approvals.retain(|approval| approval.request.execution != execution);
                }
                self.transcript.working(&execution, &message);
            }
            Notice::CallEnded(done) => {
                self.chat.approvals.retain(|approval| approval.request.execution != done.execution);
                self.transcript.done(done);
            }
            Notice::Thinking { query, phase, message } => {
                let first = message.lines().next().unwrap_or_default();
                let doing = if first.is_empty() { phase.as_str() } else { first };
                let running = self.running(&query);
                if !running.cancelling {
                    running.doing = doing.to_owned();
                }
            }
        }
        Vec::new()
    }

    /// The running query, which another client of the session may have sent.
    fn running(&mut self, query: &str) -> &mut Running {
        let running = self.chat.running.get_or_insert_default();
        running.query.get_or_insert_with(|| query.to_owned());
        running
    }

    fn complete(&mut self, query: &str, status: &str, figures: Figures) -> Vec<Request> {
        self.chat.tokens = self.chat.tokens.saturating_add(figures.tokens);
        self.chat.model = figures.model.or(self.chat.model.take());
        self.chat.approvals.retain(|approval| approval.request.query != query);
        match status {
            "success" => {}
            "cancelled" => self.transcript.add_note("stopped"),
            "timeout" => self.transcript.add_error("timed out"),
            _ => {}
        }
        self.hint = (status == "success").then(|| {
            let seconds = figures.millis as f64 / 1000.0;
            format!("{} tokens in {seconds:.1} s, {:.1} a second", figures.tokens, figures.pace)
        });
        match self.chat.running.as_ref().and_then(|running| running.query.as_deref()) {
            Some(open) if open != query => Vec::new(),
            _ => self.query_ended(),
        }
    }
}

fn count(running: &mut Running, token: &Token) {
    let end = running.received_bytes.saturating_add(token.text.len() as u64);
    running.received_bytes = token.end.unwrap_or(end);
}
