//! Tells a story to every store and checks what each answers.
//!
//! A line is `when => then`, or `when` alone if nothing is answered:
//! ```text
//! append s 0 a b       events a and b after number 0; `open` as a word marks the card; `a@9` has
//!                      a time of its own
//! send s 2 c           the same, but nobody waits yet
//! settle               waits for all that was sent, in order
//! read s 0 [n [bytes]] what comes after 0, at most n events or so many bytes
//! head s | list 10 | open | clock 50 (the time from now on)
//! fork t s 2 x          t begins with what s has up to 2, and event x
//! recent 10 [/w] | forks s | card s
//! restart              drops the store and opens it again; leases stay as they were
//! alias desk j         who goes by a name
//! name desk j s [t]    has s go by it, instead of t
//! put a | blob a       keeps content; reads it. `#a` as a word is an event that refers to it,
//!                      `~a` text of a model
//! update s 2 open      has the summary say something else, if 2 is the head
//! keep s 2 x | snapshot s   keeps a state after 2; the state from which to read
//! lease s              takes the session over (otherwise done once, at its first append)
//! ```

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Alias, BoxFuture, Lease, Page, Snapshot, StorageError};
use quintet_kernel::session_summary::{Fork, SessionSummary};

use crate::stores_under_test::{Store, Subject, batch, blob, session, summary};

/// Checks a story against every store.
pub(crate) async fn check(story: &str) {
    for subject in Subject::all().into_iter().chain([Subject::with_objects()]) {
        let mut teller = Teller::new(subject);
        for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (when, then) = line.split_once("=>").unwrap_or((line, ""));
            let words: Vec<&str> = when.split_whitespace().collect();
            let answer = teller.tell(&words).await;
            assert_eq!(answer, then.trim(), "{line} ({})", teller.name());
        }
    }
}

struct Teller {
    subject: Subject,
    store: Option<Arc<dyn Store>>,
    leases: HashMap<String, Lease>,
    created: HashMap<String, i64>,
    sent: Vec<BoxFuture<'static, Result<Seq, StorageError>>>,
    clock: i64,
}

impl Teller {
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
        Arc::clone(self.store.as_ref().expect("it is started"))
    }

    async fn tell(&mut self, words: &[&str]) -> String {
        match words {
            ["append", name, expected, words @ ..] => {
                let sent = self.send(name, number(expected), words).await;
                word(sent.await.map(|head| head.to_string()))
            }
            ["send", name, expected, words @ ..] => {
                let sent = self.send(name, number(expected), words).await;
                self.sent.push(sent);
                String::new()
            }
            ["settle"] => self.settle().await,
            ["read", name, after, limits @ ..] => {
                let page = page(limits);
                word(self.store().read(&session(name), number(after), page).await.map(|r| text(&r)))
            }
            ["head", name] => {
                word(self.store().head(&session(name)).await.map(|h| format!("{h:?}")))
            }
            ["alias", space, name] => word(
                self.store().alias(&alias(space, name)).await.map(|found| format!("{found:?}")),
            ),
            ["name", space, name, s, old @ ..] => {
                let old = old.first().map(|old| session(old));
                let (alias, store) = (alias(space, name), self.store());
                let named = store.set_alias(&alias, &session(s), old.as_ref()).await;
                word(named.map(|holder| holder.to_string()))
            }
            ["open"] => word(self.store().open().await.map(|ids| format!("{ids:?}"))),
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
                word(forked.map(|head| head.to_string()))
            }
            ["erase", name] => {
                let lease = match self.leases.get(*name) {
                    Some(lease) => lease.clone(),
                    None => self.lease(name).await,
                };
                word(self.store().erase(&lease).await.map(|()| "gone".into()))
            }
            ["put", word] => {
                let put = self.subject.blobs().put(word.as_bytes().to_vec()).await;
                assert_eq!(put.expect("kept"), blob(word));
                String::new()
            }
            ["blob", word] => match self.subject.blobs().get(&blob(word)).await {
                Ok(content) => String::from_utf8(content).expect("text"),
                Err(StorageError::Missing(_)) => "gone".into(),
                Err(other) => format!("{other:?}"),
            },
            ["lease", name] => {
                self.lease(name).await;
                String::new()
            }
            other => self.look(other).await,
        }
    }

    /// What the list of sessions and the snapshots have to do with.
    async fn look(&mut self, words: &[&str]) -> String {
        match words {
            ["list", limit] => {
                let summaries = self.store().list(number(limit) as usize).await;
                word(summaries.map(|summaries| self.names(&summaries)))
            }
            ["recent", limit] => {
                let summaries = self.store().recent(None, number(limit) as usize).await;
                word(summaries.map(|summaries| self.names(&summaries)))
            }
            ["recent", limit, workspace] => {
                let here = Some(Path::new(workspace));
                let summaries = self.store().recent(here, number(limit) as usize).await;
                word(summaries.map(|summaries| self.names(&summaries)))
            }
            ["forks", name] => {
                let summaries = self.store().forks(&session(name)).await;
                word(summaries.map(|summaries| self.names(&summaries)))
            }
            ["card", name] => {
                let summary = self.store().summary(&session(name)).await;
                let at = |summary: SessionSummary| {
                    let name = self.names(std::slice::from_ref(&summary));
                    format!("{name} {}@{}", summary.head, summary.updated.micros())
                };
                word(summary.map(|summary| summary.map_or(String::new(), at)))
            }
            ["update", name, head, words @ ..] => {
                let lease = self.leases[*name].clone();
                let summary = SessionSummary {
                    open: words.contains(&"open"),
                    head: number(head),
                    ..summary(name, self.created[*name], self.clock)
                };
                word(self.store().update(&lease, summary).await.map(|()| "done".into()))
            }
            ["keep", name, seq, body] => {
                let (lease, seq) = (self.leases[*name].clone(), number(seq));
                let snapshot = Snapshot { seq, format: "f".into(), body: body.as_bytes().into() };
                word(self.store().keep_snapshot(&lease, snapshot).await.map(|()| String::new()))
            }
            ["snapshot", name] => {
                let kept = |Snapshot { seq, format, body }: Snapshot| {
                    format!("{seq}{}/{format}", String::from_utf8_lossy(&body))
                };
                let found = self.store().snapshot(&session(name)).await;
                word(found.map(|found| found.map_or(String::new(), kept)))
            }
            other => panic!("what is {other:?}?"),
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
        let words: Vec<_> = words.iter().copied().filter(|word| *word != "open").collect();
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
            answers.push(word(sent.await.map(|head| head.to_string())));
        }
        answers.join(", ")
    }

    /// The names on cards, which must have come back as they were given.
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
        Event::Labelled { key: word, value: None } | Event::TextAppended { text: word, .. } => {
            format!("{}{word}@{}", record.seq, record.at.micros())
        }
        other => format!("{other:?}"),
    };
    records.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn word(answer: Result<String, StorageError>) -> String {
    answer.unwrap_or_else(|error| match error {
        StorageError::Conflict(head) => format!("conflict {head}"),
        StorageError::Fenced => "fenced".into(),
        other => format!("{other:?}"),
    })
}
