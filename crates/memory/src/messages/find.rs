//! Finds messages in the index.

use std::collections::{HashMap, HashSet};

use quintet_kernel::port::{SessionHit, SessionQuery};
use quintet_kernel::{MessageId, SessionId, Time, TurnId};
use rusqlite::{Connection, OptionalExtension as _, params};

use super::excerpt::excerpt;
use super::highlight::Highlighter;
use super::write::role;
use crate::fusion::{Ranking, fuse};
use crate::vectors::nearest;
use crate::words;

/// Default and maximum number of returned messages.
const DEFAULT_LIMIT: usize = 20;
const RESULTS_LIMIT: usize = 100;

/// Maximum number of returned messages per session.
const RESULTS_PER_SESSION_LIMIT: usize = 3;

/// Maximum number of messages that are ranked by each measure.
const CANDIDATES_LIMIT: usize = 400;

/// Number of newest messages that are scanned for symbols.
const SYMBOL_SCAN_LIMIT: i64 = 50_000;

/// The messages that match best, best first.
pub(super) fn find(
    db: &Connection,
    query: &SessionQuery,
    vector: Option<&[f32]>,
) -> rusqlite::Result<Vec<SessionHit>> {
    let phrases: Vec<String> =
        words::query_words(&query.text).iter().map(|word| words::phrase(word)).collect();
    let mut ranking = by_words(db, &phrases)?;
    if ranking.is_empty() {
        ranking = by_symbols(db, &query.text)?;
    }
    let mut rankings = vec![ranking];
    if let Some(vector) = vector {
        let mut all = db.prepare("SELECT id, vector FROM vectors")?;
        rankings.push(nearest(all.query([])?, vector, CANDIDATES_LIMIT)?);
    }
    let mut ranking = fuse(&rankings);
    // Of equal matches the one that was indexed last comes first.
    ranking.sort_by(|(a, score), (b, other)| other.total_cmp(score).then(b.cmp(a)));
    let highlighter = Highlighter::new(&phrases, &query.text)?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(RESULTS_LIMIT);
    select(db, &ranking, limit, &highlighter)
}

/// Ranks messages by BM25: first those with all words, then those with some.
fn by_words(db: &Connection, phrases: &[String]) -> rusqlite::Result<Ranking> {
    if phrases.is_empty() {
        return Ok(Ranking::new());
    }
    let mut ids = matching(db, &phrases.join(" AND "))?;
    if ids.len() < CANDIDATES_LIMIT && phrases.len() > 1 {
        let known: HashSet<i64> = ids.iter().copied().collect();
        let some = matching(db, &phrases.join(" OR "))?;
        ids.extend(some.into_iter().filter(|id| !known.contains(id)));
    }
    Ok(ids.into_iter().enumerate().map(|(place, id)| (id, -(place as f64))).collect())
}

fn matching(db: &Connection, query: &str) -> rusqlite::Result<Vec<i64>> {
    let mut matching =
        db.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1 ORDER BY rank LIMIT ?2")?;
    let limit = i64::try_from(CANDIDATES_LIMIT).unwrap_or(i64::MAX);
    matching.query_map(params![query, limit], |row| row.get(0))?.collect()
}

/// Ranks messages with all symbols and emoji of the query, newest first.
fn by_symbols(db: &Connection, query: &str) -> rusqlite::Result<Ranking> {
    let marks: Vec<&str> = query.split_whitespace().take(16).collect();
    let mut messages = db.prepare("SELECT id, text FROM messages ORDER BY id DESC LIMIT ?1")?;
    let mut rows = messages.query([SYMBOL_SCAN_LIMIT])?;
    let mut ranking = Ranking::new();
    while let Some(row) = rows.next()? {
        let text = row.get_ref(1)?.as_str()?;
        if marks.iter().all(|mark| text.contains(mark)) {
            ranking.push((row.get(0)?, -(ranking.len() as f64)));
        }
        if ranking.len() >= CANDIDATES_LIMIT {
            break;
        }
    }
    Ok(ranking)
}

/// The first messages of a ranking, a few per session.
fn select(
    db: &Connection,
    ranking: &[(i64, f64)],
    limit: usize,
    highlighter: &Highlighter,
) -> rusqlite::Result<Vec<SessionHit>> {
    let mut hits: Vec<SessionHit> = Vec::new();
    let mut of_session: HashMap<SessionId, usize> = HashMap::new();
    for (id, score) in ranking {
        if hits.len() >= limit {
            break;
        }
        let Some((mut hit, text)) = hit(db, *id, *score)? else { continue };
        let count = of_session.entry(hit.session.clone()).or_default();
        if *count >= RESULTS_PER_SESSION_LIMIT {
            continue;
        }
        *count += 1;
        (hit.excerpt, hit.matches) = excerpt(&text, &highlighter.matches(&text)?);
        hits.push(hit);
    }
    Ok(hits)
}

/// A message with its text, without an excerpt.
fn hit(db: &Connection, id: i64, score: f64) -> rusqlite::Result<Option<(SessionHit, String)>> {
    let mut message = db.prepare_cached(
        "SELECT sessions.id, title, workspace, turn, message, messages.seq, role, at, text
         FROM messages JOIN sessions ON sessions.key = messages.session WHERE messages.id = ?1",
    )?;
    let found = message.query_row([id], |row| {
        let text = |n| row.get::<_, String>(n);
        let ids = SessionId::parse(&text(0)?)
            .zip(TurnId::parse(&text(3)?).zip(MessageId::parse(&text(4)?)));
        let Some((session, (turn, message))) = ids else { return Ok(None) };
        let hit = SessionHit {
            session,
            title: text(1)?,
            workspace: text(2)?.into(),
            turn,
            message,
            seq: row.get::<_, i64>(5)?.unsigned_abs(),
            role: role(&text(6)?),
            at: Time::from_micros(row.get(7)?),
            excerpt: String::new(),
            matches: Vec::new(),
            score,
        };
        Ok(Some((hit, text(8)?)))
    });
    Ok(found.optional()?.flatten())
}
