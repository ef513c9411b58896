//! Finds passages in the index.

use std::collections::HashMap;

use quintet_kernel::memory::{MemoryFile, MemoryMatch};
use rusqlite::{Connection, params};

use crate::excerpt::excerpt;
use crate::fusion::{Ranking, fuse, rounded};
use crate::vectors::nearest;
use crate::words;

/// Minimum number of ranked passages.
const CANDIDATES_MINIMUM: usize = 100;

/// Weight of words in headings, relative to those in the text.
const HEADINGS_WEIGHT: f64 = 0.4;

/// A search for passages.
#[derive(Debug)]
pub(crate) struct PassageQuery<'a> {
    pub(crate) query: &'a str,
    pub(crate) kind: Option<MemoryFile>,
    pub(crate) limit: usize,
    /// The vector of the query, if passages are ranked by meaning as well.
    pub(crate) vector: Option<&'a [f32]>,
}

/// The passages that match best, best first.
pub(crate) fn find(
    db: &Connection,
    query: &PassageQuery<'_>,
) -> rusqlite::Result<Vec<MemoryMatch>> {
    let words = words::query_words(query.query);
    let most = query.limit.max(CANDIDATES_MINIMUM);
    let mut ranking = by_words(db, &words, query.kind, most)?;
    if ranking.is_empty() {
        ranking = by_symbols(db, query.query, query.kind)?;
    }
    if let Some(vector) = query.vector {
        ranking = fuse(&[ranking, by_meaning(db, vector, query.kind, most)?]);
    }
    let mut found = Vec::new();
    for (id, score) in ranking {
        found.push(load_passage(db, id, score, &words)?);
    }
    // Of equal matches the newest comes first.
    found.sort_by(|(a, day_of_a), (b, day_of_b)| {
        let place = |found: &MemoryMatch| (found.path.clone(), found.line_start);
        b.score
            .total_cmp(&a.score)
            .then_with(|| day_of_b.cmp(day_of_a))
            .then_with(|| place(a).cmp(&place(b)))
    });
    Ok(found.into_iter().take(query.limit).map(|(found, _)| found).collect())
}

/// Ranks passages by the cosine of their vectors with that of the query.
fn by_meaning(
    db: &Connection,
    vector: &[f32],
    kind: Option<MemoryFile>,
    most: usize,
) -> rusqlite::Result<Ranking> {
    match kind {
        None => {
            let mut all = db.prepare_cached("SELECT id, vector FROM vectors")?;
            nearest(all.query([])?, vector, most)
        }
        Some(kind) => {
            let mut some = db.prepare_cached(
                "SELECT id, vector FROM vectors JOIN passages USING (id) WHERE kind = ?1",
            )?;
            nearest(some.query([kind.name()])?, vector, most)
        }
    }
}

/// Ranks passages by BM25 relative to the best, and by the share of query words they have; each counts half.
fn by_words(
    db: &Connection,
    query: &[String],
    kind: Option<MemoryFile>,
    most: usize,
) -> rusqlite::Result<Ranking> {
    let phrases: Vec<String> = query.iter().map(|word| words::phrase(word)).collect();
    let hits = ranked(db, &phrases, kind, most)?;
    let best = hits.iter().map(|(_, rank)| *rank).fold(f64::MIN_POSITIVE, f64::max);
    let there = coverage(db, &phrases, &hits)?;
    let score = |(id, rank): (i64, f64)| {
        (id, rounded(rank / best / 2.0 + there.get(&id).copied().unwrap_or_default() / 2.0))
    };
    Ok(hits.into_iter().map(score).collect())
}

fn ranked(
    db: &Connection,
    phrases: &[String],
    kind: Option<MemoryFile>,
    most: usize,
) -> rusqlite::Result<Vec<(i64, f64)>> {
    if phrases.is_empty() {
        return Ok(Vec::new());
    }
    let mut hits = db.prepare_cached(
        "SELECT words.rowid, -bm25(words, 1.0, ?4) AS rank FROM words
         JOIN passages ON passages.id = words.rowid
         WHERE words MATCH ?1 AND (?2 IS NULL OR passages.kind = ?2)
         ORDER BY rank DESC, passages.day DESC LIMIT ?3",
    )?;
    let (query, most) = (phrases.join(" OR "), i64::try_from(most).unwrap_or(i64::MAX));
    let kind = kind.map(MemoryFile::name);
    let rows = hits.query_map(params![query, kind, most, HEADINGS_WEIGHT], |row| {
        Ok((row.get(0)?, row.get::<_, f64>(1)?))
    })?;
    rows.collect()
}

/// The share of the query words that each passage has; rare words count more.
fn coverage(
    db: &Connection,
    phrases: &[String],
    hits: &[(i64, f64)],
) -> rusqlite::Result<HashMap<i64, f64>> {
    let mut there: HashMap<i64, f64> = hits.iter().map(|(id, _)| (*id, 0.0)).collect();
    let all: f64 = db.query_row("SELECT count(*) FROM passages", [], |row| row.get(0))?;
    let mut having = db.prepare_cached("SELECT rowid FROM words WHERE words MATCH ?1")?;
    let mut total = f64::MIN_POSITIVE;
    for phrase in phrases {
        let ids: Vec<i64> =
            having.query_map([phrase], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
        let weight = (1.0 + all / (ids.len() as f64 + 1.0)).ln();
        total += weight;
        for id in ids {
            there.entry(id).and_modify(|sum| *sum += weight);
        }
    }
    there.values_mut().for_each(|sum| *sum /= total);
    Ok(there)
}

/// Ranks passages by the share of the query's symbols and emoji that they have.
fn by_symbols(db: &Connection, query: &str, kind: Option<MemoryFile>) -> rusqlite::Result<Ranking> {
    let marks: Vec<String> = query.split_whitespace().take(16).map(str::to_lowercase).collect();
    let mut all =
        db.prepare_cached("SELECT id, text FROM passages WHERE ?1 IS NULL OR kind = ?1")?;
    let mut rows = all.query([kind.map(MemoryFile::name)])?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let text = row.get::<_, String>(1)?.to_lowercase();
        let there = marks.iter().filter(|mark| text.contains(mark.as_str())).count();
        if there > 0 {
            hits.push((row.get(0)?, there as f64 / marks.len() as f64));
        }
    }
    Ok(hits)
}

/// Loads a passage and the day of its note.
fn load_passage(
    db: &Connection,
    id: i64,
    score: f64,
    query: &[String],
) -> rusqlite::Result<(MemoryMatch, String)> {
    let mut passage = db.prepare_cached(
        "SELECT path, line_start, line_end, text, day FROM passages WHERE id = ?1",
    )?;
    passage.query_row([id], |row| {
        let line = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
        let found = MemoryMatch {
            path: row.get(0)?,
            line_start: line(1)?,
            line_end: line(2)?,
            excerpt: excerpt(&row.get::<_, String>(3)?, query),
            score,
        };
        Ok((found, row.get(4)?))
    })
}
