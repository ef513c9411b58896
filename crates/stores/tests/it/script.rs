//! Runs a script against every store and checks the results.
//!
//! A line is `command => result`, or `command` alone if there is no result:
//! ```text
//! append s 0 a b       events a and b after number 0; `open` marks the session as open; `a@9` has
//!                      its own time
//! send s 2 c           the same, without waiting for the result
//! settle               waits for all results, in order
//! read s 0 [n [bytes]] the events after 0, at most n events or this many bytes
//! head s | list 10 | open | clock 50 (the time from now on)
//! fork t s 2 x          t shares the events of s up to 2, then has event x
//! recent 10 [/w] | forks s | card s
//! restart              drops the store and opens it again; leases are kept
//! alias desk j         the session of an alias
//! name desk j s [t]    points the alias at s, instead of t
//! put a | blob a       stores content; reads it. `#a` is an event that refers to it,
//!                      `~a` text of a model
//! update s 2 open      replaces the summary, if 2 is the head
//! keep s 2 x | snapshot s   stores a snapshot after 2; the snapshot to read from
//! lease s              acquires the lease (otherwise done once, at its first append)
//! ```

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Alias, BoxFuture, Lease, Page, Snapshot, StorageError};
use quintet_kernel::session_summary::{Fork, SessionSummary};

use crate::stores_under_test::{Store, Subject, batch, blob, session, summary};

/// Checks a script against every store.
pub(crate) async fn check(story: &str) {
    for subject in Subject::all().into_iter().chain([Subject::with_objects()]) {
        let mut runner = ScriptRunner::new(subject);
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (when, then) = line.split_once("=>").unwrap_or((line, ""));
            let words: Vec<&str> = when.split_whitespace().collect();
            let answer = runner.run(&words).await;
            assert_eq!(answer, then.trim(), "{line} ({})", runner.name());
        }
    }
}

struct ScriptRunner {
    subject: Subject,
    store: Option<Arc<dyn Store>>,
    leases: HashMap<String, Lease>,
    created: HashMap<String, i64>,
    sent: Vec<BoxFuture<'static, Result<Seq, StorageError>>>,
    clock: i64,
}

impl ScriptRunner {
    fn new(subject: Subject) -> Self {
        let store = Some(subject.start());
        let (leases, created) = (HashMap::new(), HashMap::new());
        Self { subject, store, leases, created, sent: Vec::new(), clock: 0 }
    }

    fn name(&self) -> &'static str {
        match self.subject {
            Subject::Memory(_) => "memory",
            Subject::Sqlite(_) => "sqlite",
            Subject::Postgres(_) => "postgres",
            Subject::Objects(..) => "postgres with objects",
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        Arc::clone(self.store.as_ref().expect("the store is started"))
    }

    async fn run(&mut self, words: &[&str]) -> String {
        match words {
            ["append", name, expected, words @ ..] => {
                let sent = self.send(name, number(expected), words).await;
                result_text(sent.await.map(|head| head.to_string()))
            }
            ["send", name, expected, words @ ..] => {
                let sent = self.send(name, number(expected), words).await;
                self.sent.push(sent);
                String::new()
            }
            ["settle"] => self.settle().await,
            ["read", name, after, limits @ ..] => {
                let page = page(limits);
                result_text(
                    self.store().read(&session(name), number(after), page).await.map(|r| text(&r)),
                )
            }
            ["head", name] => {
                result_text(self.store().head(&session(name)).await.map(|h| format!("{h:?}")))
            }
            ["alias", space, name] => result_text(
                self.store().alias(&alias(space, name)).await.map(|found| format!("{found:?}")),
            ),
            ["name", space, name, s, old @ ..] => {
                let old = old.first().map(|old| session(old));
                let (alias, store) = (alias(space, name), self.store());
                let named = store.set_alias(&alias, &session(s), old.as_ref()).await;
                result_text(named.map(|holder| holder.to_string()))
            }
            ["open"] => result_text(self.store().open().await.map(|ids| format!("{ids:?}"))),
            ["clock", time] => {
                self.clock = number(time) as i64;
                String::new()
            }
            ["restart"] => {
                self.store = None;
                self.store = Some(self.subject.start());
                String::new()
            }
            ["fork", name, parent, at, words @ ..] => {
                let forked = self.fork(name, (parent, number(at)), words).await;
                result_text(forked.map(|head| head.to_string()))
            }
            ["erase", name] => {
                let lease = match self.leases.get(*name) {
                    Some(lease) => lease.clone(),
                    None => self.lease(name).await,
                };
                result_text(self.store().erase(&lease).await.map(|()| "gone".into()))
            }
            ["put", result_text] => {
                let put = self.subject.blobs().put(result_text.as_bytes().to_vec()).await;
                assert_eq!(put.expect("kept"), blob(result_text));
                String::new()
            }
            ["blob", result_text] => match self.subject.blobs().get(&blob(result_text)).await {
                Ok(content) => String::from_utf8(content).expect("text"),
                Err(StorageError::Missing(_)) => "gone".into(),
                Err(other) => format!("{other:?}"),
            },
            ["lease", name] => {
                self.lease(name).await;
                String::new()
            }
            other => self.query(other).await,
        }
    }

    /// Commands about the session index and snapshots.
    async fn query(&mut self, words: &[&str]) -> String {
        match words {
            ["list", limit] => {
                let summaries = self.store().list(number(limit) as usize).await;
                result_text(summaries.map(|summaries| self.names(&summaries)))
            }
            ["recent", limit] => {
                let summaries = self.store().recent(None, number(limit) as usize).await;
                result_text(summaries.map(|summaries| self.names(&summaries)))
            }
            ["recent", limit, workspace] => {
                let here = Some(Path::new(workspace));
                let summaries = self.store().recent(here, number(limit) as usize).await;
                result_text(summaries.map(|summaries| self.names(&summaries)))
            }
            ["forks", name] => {
                let summaries = self.store().forks(&session(name)).await;
                result_text(summaries.map(|summaries| self.names(&summaries)))
            }
            ["card", name] => {
                let summary = self.store().summary(&session(name)).await;
                let at = |summary: SessionSummary| {
                    let name = self.names(std::slice::from_ref(&summary));
                    format!("{name} {}@{}", summary.head, summary.updated.micros())
                };
                result_text(summary.map(|summary| summary.map_or(String::new(), at)))
            }
            ["update", name, head, words @ ..] => {
                let lease = self.leases[*name].clone();
                let summary = SessionSummary {
                    open: words.contains(&"open"),
                    head: number(head),
                    ..summary(name, self.created[*name], self.clock)
                };
                result_text(self.store().update(&lease, summary).await.map(|()| "done".into()))
            }
            ["keep", name, seq, body] => {
                let (lease, seq) = (self.leases[*name].clone(), number(seq));
                let snapshot = Snapshot { seq, format: "f".into(), body: body.as_bytes().into() };
                result_text(
                    self.store().keep_snapshot(&lease, snapshot).await.map(|()| String::new()),
                )
            }
            ["snapshot", name] => {
                let kept = |Snapshot { seq, format, body }: Snapshot| {
                    format!("{seq}{}/{format}", String::from_utf8_lossy(&body))
                };
                let found = self.store().snapshot(&session(name)).await;
                result_text(found.map(|found| found.map_or(String::new(), kept)))
            }
            other => panic!("unknown command {other:?}"),
        }
    }

    async fn lease(&mut self, name: &str) -> Lease {
        let lease = self.store().acquire(&session(name)).await.expect("a lease");
        self.leases.insert(name.into(), lease.clone());
        lease
    }

    async fn send(
        &mut self,
        name: &str,
        expected: Seq,
        words: &[&str],
    ) -> BoxFuture<'static, Result<Seq, StorageError>> {
        let lease = match self.leases.get(name) {
            Some(lease) => lease.clone(),
            None => self.lease(name).await,
        };
        self.clock += 1;
        let created = *self.created.entry(name.into()).or_insert(self.clock);
        let summary =
            SessionSummary { open: words.contains(&"open"), ..summary(name, created, self.clock) };
        let words: Vec<_> =
            words.iter().copied().filter(|result_text| *result_text != "open").collect();
        self.store().append(&lease, expected, batch(summary, &words))
    }

    async fn fork(
        &mut self,
        name: &str,
        (parent, at): (&str, Seq),
        words: &[&str],
    ) -> Result<Seq, StorageError> {
        let lease = self.lease(name).await;
        self.clock += 1;
        let created = *self.created.entry(name.into()).or_insert(self.clock);
        let from = Fork { parent: session(parent), at };
        let batch = batch(summary(name, created, self.clock), words);
        self.store().fork(&lease, &from, batch).await
    }

    async fn settle(&mut self) -> String {
        let mut answers = Vec::new();
        for sent in self.sent.drain(..) {
            answers.push(result_text(sent.await.map(|head| head.to_string())));
        }
        answers.join(", ")
    }

    /// The ids in summaries, which must equal the stored ones.
    fn names(&self, summaries: &[SessionSummary]) -> String {
        for found in summaries {
            let name = found.id.as_str();
            let given = summary(name, self.created[name], found.updated.micros());
            assert_eq!(*found, SessionSummary { open: found.open, head: found.head, ..given });
        }
        summaries.iter().map(|summary| summary.id.as_str()).collect::<Vec<_>>().join(" ")
    }
}

fn alias(space: &str, name: &str) -> Alias {
    Alias { space: space.into(), name: name.into() }
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn page(limits: &[&str]) -> Page {
    let limit = |at: usize| limits.get(at).map_or(usize::MAX, |text| number(text) as usize);
    Page { events: limit(0), bytes: limit(1) }
}

fn text(records: &[Record]) -> String {
    let one = |record: &Record| match &record.event {
        Event::Labelled { key: result_text, value: None }
        | Event::TextAppended { text: result_text, .. } => {
            format!("{}{result_text}@{}", record.seq, record.at.micros())
        }
        other => format!("{other:?}"),
    };
    records.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn result_text(answer: Result<String, StorageError>) -> String {
    answer.unwrap_or_else(|error| match error {
        StorageError::Conflict(head) => format!("conflict {head}"),
        StorageError::Fenced => "fenced".into(),
        other => format!("{other:?}"),
    })
}
