//! Formats search results for people and for programs.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use quintet_kernel::message::Role;
use quintet_kernel::port::{SessionHit, SessionHits};
use serde_json::{Value, json};

/// A line for each session and below it one for each message. Matches are bold on a terminal.
pub(super) fn text(found: &SessionHits) -> String {
    lines(&found.hits, std::io::stdout().is_terminal())
}

fn lines(hits: &[SessionHit], bold: bool) -> String {
    if hits.is_empty() {
        return "nothing found\n".to_owned();
    }
    let mut text = String::new();
    let mut shown: Vec<&SessionHit> = Vec::new();
    for first in hits {
        if shown.iter().any(|hit| hit.session == first.session) {
            continue;
        }
        shown.push(first);
        let (workspace, title) = (plain(&first.workspace.to_string_lossy()), plain(&first.title));
        let _infallible = writeln!(text, "{}  {workspace}  {title}", first.session);
        for hit in hits.iter().filter(|hit| hit.session == first.session) {
            let (at, role) = (hit.at, role(hit.role));
            let _infallible = writeln!(text, "  {at}  {role}: {}", excerpt(hit, bold));
        }
    }
    text
}

fn excerpt(hit: &SessionHit, bold: bool) -> String {
    if !bold {
        return plain(&hit.excerpt);
    }
    let (mut text, mut at) = (String::new(), 0);
    for range in &hit.matches {
        let between = hit.excerpt.get(at..range.start).unwrap_or_default();
        let word = hit.excerpt.get(range.clone()).unwrap_or_default();
        let _infallible = write!(text, "{}\u{1b}[1m{}\u{1b}[0m", plain(between), plain(word));
        at = range.end;
    }
    text + &plain(hit.excerpt.get(at..).unwrap_or_default())
}

/// Removes control characters from text of others.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The result as one JSON document.
pub(super) fn json(found: &SessionHits) -> String {
    let hits: Vec<Value> = found.hits.iter().map(hit).collect();
    let mut document = json!({ "search": found.method.name(), "hits": hits });
    if let Some(reason) = found.method.reason() {
        document["search_reason"] = reason.into();
    }
    format!("{document}\n")
}

fn hit(hit: &SessionHit) -> Value {
    let matches: Vec<[usize; 2]> = hit.matches.iter().map(|word| [word.start, word.end]).collect();
    json!({
        "session": hit.session.as_str(),
        "title": hit.title,
        "workspace": hit.workspace.to_string_lossy(),
        "turn": hit.turn.as_str(),
        "message": hit.message.as_str(),
        "seq": hit.seq,
        "role": role(hit.role),
        "at": hit.at.to_string(),
        "excerpt": hit.excerpt,
        "matches": matches,
        "score": hit.score,
    })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use quintet_kernel::{MessageId, SessionId, Time, TurnId};

    use super::*;

    fn found(session: &str, excerpt: &str) -> SessionHit {
        SessionHit {
            session: SessionId::parse(session).unwrap(),
            title: "Tea\u{1b}[2J".into(),
            workspace: "/home/me".into(),
            turn: TurnId::parse("t").unwrap(),
            message: MessageId::parse("m").unwrap(),
            seq: 7,
            role: Role::User,
            at: Time::from_micros(0),
            excerpt: excerpt.into(),
            matches: excerpt.match_indices("tea").map(|(at, _)| at..at + 3).collect(),
            score: 1.0,
        }
    }

    #[test]
    fn hits_are_listed_below_their_session() {
        let hits = [found("a", "tea, é tea"), found("b", "\u{1b}"), found("a", "no")];
        let when = "1970-01-01T00:00:00Z";
        let expected = format!(
            "a  /home/me  Tea [2J\n  {when}  user: tea, é tea\n  {when}  user: no\n\
             b  /home/me  Tea [2J\n  {when}  user:  \n"
        );
        assert_eq!(lines(&hits, false), expected);
        let bold = lines(&hits[..1], true);
        assert!(bold.contains("user: \u{1b}[1mtea\u{1b}[0m, é \u{1b}[1mtea\u{1b}[0m\n"), "{bold}");
        assert_eq!(lines(&[], true), "nothing found\n");
    }
}
