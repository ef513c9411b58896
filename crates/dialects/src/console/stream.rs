//! One stream for a whole page: summaries and questions of all sessions, and the events of some.
//!
//! A page names the sessions that it shows with its positions, and gets what is missing. There is no queue: a
//! slow page has a cursor for each session and a set of changed sessions.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use quintet_kernel::port::{Error, Follower};
use quintet_kernel::{Cursor, SessionId, SessionSummary, Time};
use serde_json::{Map, Value, json};

use super::app_state::AppState;
use super::{encode, question, shape};
use crate::change_feed::{Change, Subscription};
use crate::presence::Presence;
use crate::transport::query::parameters;

/// The interval of heartbeats.
const BEAT_INTERVAL: Duration = Duration::from_secs(5);
/// When the first heartbeat is sent: by then the page itself is counted.
const FIRST_BEAT_DELAY: Duration = Duration::from_millis(1_200);
/// How long changes of sessions are collected before they are sent.
const GATHER_INTERVAL: Duration = Duration::from_millis(120);
/// How many sessions a page may show at once.
const WATCH_LIMIT: usize = 16;
/// How many of the newest sessions are looked at for questions and changes.
const RECENT_LIMIT: usize = 1_000;

/// The request of a page for its stream.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The sessions whose events it shows, each with the position up to which it has them.
    watched: Vec<(SessionId, Cursor)>,
    /// The newest summary that it has.
    since: Option<Time>,
}

impl Request {
    /// Reads the query: `watch=SESSION@POSITION`, several times, and `since=MICROS`. Fails with what is
    /// wrong.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let mut request = Self::default();
        for (name, value) in parameters(query) {
            match name.as_str() {
                "watch" => {
                    let parts = value.split_once('@');
                    let watched = parts.and_then(|(session, position)| {
                        Some((SessionId::parse(session)?, Cursor::parse(position)?))
                    });
                    let wrong = || format!("watch must be SESSION@POSITION, not {value:?}");
                    request.watched.push(watched.ok_or_else(wrong)?);
                }
                "since" => {
                    let micros = value.parse().map_err(|_| "since must be a number")?;
                    request.since = Some(Time::from_micros(micros));
                }
                // Checked by the access policy.
                "access_token" => {}
                _ => return Err(format!("unknown parameter: {name}")),
            }
        }
        if request.watched.len() > WATCH_LIMIT {
            return Err(format!("a stream follows at most {WATCH_LIMIT} sessions"));
        }
        Ok(request)
    }
}

type Frames = BoxStream<'static, Vec<u8>>;

/// Opens the stream. Fails if sessions cannot be listed.
pub(super) async fn open(app: AppState, request: Request) -> Result<Response, Error> {
    // The subscription comes first: what changes from here on is not missed.
    let subscription = app.services.change_feed.subscribe();
    let summaries = app.services.sessions.recent(None, RECENT_LIMIT).await?;
    let (questions, asking) = open_questions(&app, &summaries).await;
    let mut first = Vec::new();
    let hello = json!({
        "boot": app.boot, "version": env!("CARGO_PKG_VERSION"), "questions": questions,
    });
    frame(&mut first, "hello", &hello);
    let is_new =
        |summary: &&SessionSummary| request.since.is_some_and(|since| summary.updated > since);
    for summary in summaries.iter().filter(is_new) {
        frame(&mut first, "card", &shape::summary(summary));
    }
    let watched = request.watched.iter().map(|(session, _)| session.clone()).collect();
    let mut sources: Vec<Frames> = Vec::new();
    for (session, position) in request.watched {
        match app.services.sessions.follow(&session, position).await {
            Ok(follow) => sources.push(followed(session, follow)),
            // The position is beyond the journal, or the session is gone: the page must load it again.
            Err(error) => {
                let reset = json!({ "session": session.as_str(), "reason": error.to_string() });
                frame(&mut first, "reset", &reset);
            }
        }
    }
    let closing = app.services.closing.clone();
    let stop = move || closing.clone().cancelled_owned().boxed();
    sources.push(beats(app.services.presence.clone(), watched).take_until(stop()).boxed());
    sources.push(Feed { app, subscription, asking }.frames().take_until(stop()).boxed());
    let frames = stream::iter([first]).chain(stream::select_all(sources));
    let body = frames.map(|frame| Ok::<_, Infallible>(Bytes::from(frame)));
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The questions of all sessions, and the sessions that have some.
pub(super) async fn open_questions(
    app: &AppState,
    summaries: &[SessionSummary],
) -> (Vec<Value>, HashSet<SessionId>) {
    let (mut questions, mut asking) = (Vec::new(), HashSet::new());
    for summary in summaries.iter().filter(|summary| summary.open) {
        let found = questions_of(app, &summary.id).await;
        if !found.is_empty() {
            asking.insert(summary.id.clone());
        }
        questions.extend(found);
    }
    (questions, asking)
}

/// The questions of a session; none if it cannot be read, which its summary shows.
async fn questions_of(app: &AppState, session: &SessionId) -> Vec<Value> {
    match app.services.sessions.view(session).await {
        Ok(state) => question::open(&state),
        Err(_) => Vec::new(),
    }
}

/// The events of one session.
fn followed(session: SessionId, follow: Box<dyn Follower>) -> Frames {
    let source = Some((session, follow));
    let frames = stream::unfold(source, |source| async move {
        let (session, mut follow) = source?;
        let mut out = Vec::new();
        match follow.next().await {
            Ok(Some(items)) => {
                for item in &items {
                    let mut body = encode::item(item);
                    body["session"] = session.as_str().into();
                    frame(&mut out, "item", &body);
                }
                Some((out, Some((session, follow))))
            }
            Ok(None) => None,
            Err(error) => {
                let reset = json!({ "session": session.as_str(), "reason": error.to_string() });
                frame(&mut out, "reset", &reset);
                Some((out, None))
            }
        }
    });
    frames.filter(|frame| std::future::ready(!frame.is_empty())).boxed()
}

/// Heartbeats, each with the front ends that follow the sessions of the page.
fn beats(
    presence: Presence,
    watched: Vec<SessionId>,
) -> impl stream::Stream<Item = Vec<u8>> + Send {
    stream::unfold((presence, watched, FIRST_BEAT_DELAY), |(presence, watched, delay)| async move {
        tokio::time::sleep(delay).await;
        let of = |session: &SessionId| (session.to_string(), json!(presence.of(session)));
        let present: Map<String, Value> = watched.iter().map(of).collect();
        let mut out = Vec::new();
        frame(&mut out, "beat", &json!({ "presence": present }));
        Some((out, (presence, watched, BEAT_INTERVAL)))
    })
}

/// Summaries and questions of the sessions that change.
struct Feed {
    app: AppState,
    subscription: Subscription,
    /// The sessions that had questions when they were last checked.
    asking: HashSet<SessionId>,
}

impl Feed {
    fn frames(self) -> Frames {
        let frames = stream::unfold(self, |mut feed| async move {
            feed.subscription.changed().await;
            tokio::time::sleep(GATHER_INTERVAL).await;
            let mut out = Vec::new();
            for (session, change) in feed.subscription.take() {
                feed.write(&session, change, &mut out).await;
            }
            Some((out, feed))
        });
        frames.filter(|frame| std::future::ready(!frame.is_empty())).boxed()
    }

    async fn write(&mut self, session: &SessionId, change: Change, out: &mut Vec<u8>) {
        let summary = match change {
            Change::Head(_) => self.app.services.sessions.summary(session).await.ok(),
            Change::Erased => None,
        };
        let Some(summary) = summary else {
            self.asking.remove(session);
            return frame(out, "erased", &json!({ "session": session.as_str() }));
        };
        frame(out, "card", &shape::summary(&summary));
        let questions =
            if summary.open { questions_of(&self.app, session).await } else { Vec::new() };
        let asked_before = self.asking.remove(session);
        if !questions.is_empty() {
            self.asking.insert(session.clone());
        }
        if asked_before || !questions.is_empty() {
            let body = json!({ "session": session.as_str(), "questions": questions });
            frame(out, "questions", &body);
        }
    }
}

fn frame(out: &mut Vec<u8>, event: &str, body: &Value) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(event.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(body.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}
