//! Vectors in an SQLite table, all of one embedding space, and the nearest of them to a query.

use rusqlite::{Connection, OptionalExtension as _, Rows, params};

use crate::fusion::Ranking;

/// The tables. The numbers are those of the texts.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
    CREATE TABLE embedding_space (version TEXT NOT NULL);
";

/// The lowest cosine that counts as related. Sentences that have nothing to do with each other are
/// below it in the usual models.
const RELATED: f32 = 0.25;

/// True if there are vectors of this space.
pub(crate) fn any_of(db: &Connection, space: &str) -> rusqlite::Result<bool> {
    let mut any = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM embedding_space WHERE version = ?1)
            AND EXISTS (SELECT 1 FROM vectors)",
    )?;
    any.query_row([space], |row| row.get(0))
}

/// Prepares the table for vectors of a space; those of another one are deleted. True if the space is
/// new.
pub(crate) fn use_space(db: &Connection, space: &str) -> rusqlite::Result<bool> {
    let mut version = db.prepare_cached("SELECT version FROM embedding_space")?;
    let known: Option<String> = version.query_row([], |row| row.get(0)).optional()?;
    if known.as_deref() == Some(space) {
        return Ok(false);
    }
    db.execute_batch("DELETE FROM vectors; DELETE FROM embedding_space;")?;
    db.execute("INSERT INTO embedding_space (version) VALUES (?1)", [space])?;
    Ok(true)
}

/// Stores the vector of a text.
pub(crate) fn put(db: &Connection, id: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    let mut put =
        db.prepare_cached("INSERT OR REPLACE INTO vectors (id, vector) VALUES (?1, ?2)")?;
    put.execute(params![id, bytes])?;
    Ok(())
}

/// A vector as it is stored.
pub(crate) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// The rows that are nearest to a query, at most so many. A row is the number of a text and its vector,
/// which is read where it lies: nothing but numbers is held in memory.
pub(crate) fn nearest(
    mut rows: Rows<'_>,
    query: &[f32],
    limit: usize,
) -> rusqlite::Result<Ranking> {
    let mut ranking = Ranking::new();
    while let Some(row) = rows.next()? {
        let cosine = dot(query, row.get_ref(1)?.as_blob()?);
        if let Some(cosine) = cosine.filter(|cosine| *cosine >= RELATED) {
            ranking.push((row.get(0)?, f64::from(cosine)));
        }
    }
    ranking.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranking.truncate(limit);
    Ok(ranking)
}

/// The product of two vectors of the same length; nothing if they have not.
fn dot(query: &[f32], bytes: &[u8]) -> Option<f32> {
    let (values, rest) = bytes.as_chunks::<4>();
    if values.len() != query.len() || !rest.is_empty() {
        return None;
    }
    // Eight sums side by side can be computed at once.
    let mut sums = [0.0; 8];
    for (query, values) in query.chunks(8).zip(values.chunks(8)) {
        for ((sum, x), y) in sums.iter_mut().zip(query).zip(values) {
            *sum += x * f32::from_le_bytes(*y);
        }
    }
    Some(sums.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_come_first_and_strangers_not_at_all() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(SCHEMA).unwrap();
        assert!(use_space(&db, "a").unwrap() && !use_space(&db, "a").unwrap());
        assert!(!any_of(&db, "a").unwrap());
        let vectors = [(1, [1.0, 0.0]), (2, [0.6, 0.8]), (3, [0.0, 1.0]), (4, [f32::NAN, 0.0])];
        for (id, vector) in vectors {
            put(&db, id, &to_bytes(&vector)).unwrap();
        }
        put(&db, 5, &to_bytes(&[1.0])).unwrap();
        put(&db, 6, b"odd").unwrap();
        let near = |limit| {
            let mut all = db.prepare("SELECT id, vector FROM vectors").unwrap();
            let near = nearest(all.query([]).unwrap(), &[1.0, 0.0], limit).unwrap();
            near.into_iter().map(|(id, _)| id).collect::<Vec<_>>()
        };
        assert_eq!((near(9), near(1)), (vec![1, 2], vec![1]));
        assert!(any_of(&db, "a").unwrap() && !any_of(&db, "b").unwrap());
        assert!(use_space(&db, "b").unwrap() && !any_of(&db, "b").unwrap());
    }

    #[test]
    fn every_number_counts() {
        let one: Vec<f32> = (0..19_u8).map(f32::from).collect();
        assert_eq!(dot(&one, &to_bytes(&one)), Some(2109.0));
    }
}
