//! Finds passages in the index.

use std::collections::HashMap;

use quintet_kernel::memory::{Found, Target};
use rusqlite::{Connection, params};

use crate::excerpt::excerpt;
use crate::fusion::{Ranking, fuse, rounded};
use crate::vectors::nearest;
use crate::words;

/// How many passages are looked at more closely, at least.
const CANDIDATES: usize = 100;

/// How much the words of headings count beside those of the text.
const HEADINGS: f64 = 0.4;

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) query: &'a str,
    pub(crate) kind: Option<Target>,
    pub(crate) limit: usize,
    /// The vector of the query, where passages are ranked by meaning, too.
    pub(crate) vector: Option<&'a [f32]>,
}

/// The passages that fit best, the best first.
pub(crate) fn find(db: &Connection, wanted: &Wanted<'_>) -> rusqlite::Result<Vec<Found>> {
    let words = words::wanted(wanted.query);
    let most = wanted.limit.max(CANDIDATES);
    let mut ranking = by_words(db, &words, wanted.kind, most)?;
    if ranking.is_empty() {
        ranking = by_marks(db, wanted.query, wanted.kind)?;
    }
    if let Some(vector) = wanted.vector {
        ranking = fuse(&[ranking, by_meaning(db, vector, wanted.kind, most)?]);
    }
    let mut found = Vec::new();
    for (id, score) in ranking {
        found.push(described(db, id, score, &words)?);
    }
    // Of those that fit equally well the newest is best.
    found.sort_by(|(a, day_of_a), (b, day_of_b)| {
        let place = |found: &Found| (found.path.clone(), found.line_start);
        b.score
            .total_cmp(&a.score)
            .then_with(|| day_of_b.cmp(day_of_a))
            .then_with(|| place(a).cmp(&place(b)))
    });
    Ok(found.into_iter().take(wanted.limit).map(|(found, _)| found).collect())
}

/// By the cosine of their vectors with that of the query.
fn by_meaning(
    db: &Connection,
    vector: &[f32],
    kind: Option<Target>,
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

/// By BM25, compared with the best, and by how much of what was asked for is there; each counts half.
fn by_words(
    db: &Connection,
    wanted: &[String],
    kind: Option<Target>,
    most: usize,
) -> rusqlite::Result<Ranking> {
    let phrases: Vec<String> = wanted.iter().map(|word| words::phrase(word)).collect();
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
    kind: Option<Target>,
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
    let kind = kind.map(Target::name);
    let rows = hits.query_map(params![query, kind, most, HEADINGS], |row| {
        Ok((row.get(0)?, row.get::<_, f64>(1)?))
    })?;
    rows.collect()
}

/// Which share of the words each passage has, rare words counting more.
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

/// By marks and pictures, which are no words: the share of them that is in a passage.
fn by_marks(db: &Connection, query: &str, kind: Option<Target>) -> rusqlite::Result<Ranking> {
    let marks: Vec<String> = query.split_whitespace().take(16).map(str::to_lowercase).collect();
    let mut all =
        db.prepare_cached("SELECT id, text FROM passages WHERE ?1 IS NULL OR kind = ?1")?;
    let mut rows = all.query([kind.map(Target::name)])?;
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

/// A passage, and the day it is of.
fn described(
    db: &Connection,
    id: i64,
    score: f64,
    wanted: &[String],
) -> rusqlite::Result<(Found, String)> {
    let mut passage = db.prepare_cached(
        "SELECT path, line_start, line_end, text, day FROM passages WHERE id = ?1",
    )?;
    passage.query_row([id], |row| {
        let line = |at| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
        let found = Found {
            path: row.get(0)?,
            line_start: line(1)?,
            line_end: line(2)?,
            excerpt: excerpt(&row.get::<_, String>(3)?, wanted),
            score,
        };
        Ok((found, row.get(4)?))
    })
}
