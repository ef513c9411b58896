//! Vectors in an SQLite table, all of one embedding space, and search for the nearest ones.

use rusqlite::{Connection, OptionalExtension as _, Rows, ToSql, params};

use crate::embedding;
use crate::fusion::Ranking;

/// The tables. Ids are those of the texts; texts without a vector are in `pending`.
pub(crate) const SCHEMA: &str = "
    CREATE TABLE vectors (id INTEGER PRIMARY KEY, vector BLOB NOT NULL);
    CREATE TABLE pending (id INTEGER PRIMARY KEY);
    CREATE TABLE embedding_space (version TEXT NOT NULL);
";

/// Maximum number of stored vectors: those of the newest texts, which have the highest ids. Others
/// are found by words only.
const VECTORS_LIMIT: i64 = 50_000;

/// The lowest cosine that counts as related. all-MiniLM-L6-v2 scores unrelated sentences up to
/// 0.15, and questions with their answers at least 0.2.
const SIMILARITY_MINIMUM: f32 = 0.2;

/// True if there are vectors of this space.
pub(crate) fn any_of(db: &Connection, space: &str) -> rusqlite::Result<bool> {
    let mut any = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM embedding_space WHERE version = ?1)
            AND EXISTS (SELECT 1 FROM vectors)",
    )?;
    any.query_row([space], |row| row.get(0))
}

/// Prepares the tables for vectors of a space. Vectors of another space are deleted, and the texts
/// that a query selects are pending again.
pub(crate) fn use_space(db: &Connection, space: &str, texts: &str) -> rusqlite::Result<()> {
    let mut version = db.prepare_cached("SELECT version FROM embedding_space")?;
    let known: Option<String> = version.query_row([], |row| row.get(0)).optional()?;
    if known.as_deref() != Some(space) {
        db.execute_batch(&format!(
            "DELETE FROM vectors; DELETE FROM embedding_space;
             INSERT OR IGNORE INTO pending {texts};"
        ))?;
        db.execute("INSERT INTO embedding_space (version) VALUES (?1)", [space])?;
    }
    trim(db, "pending")
}

/// Marks a text as pending.
pub(crate) fn add_pending(db: &Connection, id: i64) -> rusqlite::Result<()> {
    db.prepare_cached("INSERT INTO pending (id) VALUES (?1)")?.execute([id])?;
    Ok(())
}

/// The ids of the next pending texts, lowest first.
pub(crate) fn pending(db: &Connection) -> rusqlite::Result<Vec<i64>> {
    let mut pending = db.prepare_cached("SELECT id FROM pending ORDER BY id LIMIT ?1")?;
    let batch = i64::try_from(embedding::BATCH_LIMIT).unwrap_or(i64::MAX);
    pending.query_map([batch], |row| row.get(0))?.collect()
}

/// Stores the vector of a text.
pub(crate) fn put(db: &Connection, id: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    db.prepare_cached("DELETE FROM pending WHERE id = ?1")?.execute([id])?;
    let mut put =
        db.prepare_cached("INSERT OR REPLACE INTO vectors (id, vector) VALUES (?1, ?2)")?;
    put.execute(params![id, bytes])?;
    Ok(())
}

/// Stores the vectors of a batch, except for texts that are no longer pending.
pub(crate) fn put_all<'a>(
    db: &Connection,
    vectors: impl IntoIterator<Item = (i64, &'a Vec<f32>)>,
) -> rusqlite::Result<()> {
    for (id, vector) in vectors {
        let mut pending = db.prepare_cached("SELECT 1 FROM pending WHERE id = ?1")?;
        if pending.exists([id])? {
            put(db, id, &to_bytes(vector))?;
        }
    }
    Ok(())
}

/// Deletes the vectors of the texts that a query with one parameter selects.
pub(crate) fn delete(db: &Connection, texts: &str, by: impl ToSql) -> rusqlite::Result<()> {
    for table in ["vectors", "pending"] {
        let query = format!("DELETE FROM {table} WHERE id IN ({texts})");
        db.prepare_cached(&query)?.execute([&by])?;
    }
    Ok(())
}

/// Deletes the oldest vectors beyond [`VECTORS_LIMIT`].
pub(crate) fn trim_vectors(db: &Connection) -> rusqlite::Result<()> {
    trim(db, "vectors")
}

fn trim(db: &Connection, table: &str) -> rusqlite::Result<()> {
    let span = format!(
        "SELECT coalesce((SELECT max(id) FROM {table}) - (SELECT min(id) FROM {table}), 0)"
    );
    if db.query_row(&span, [], |row| row.get::<_, i64>(0))? < VECTORS_LIMIT {
        return Ok(());
    }
    let query = format!(
        "DELETE FROM {table}
         WHERE id <= (SELECT id FROM {table} ORDER BY id DESC LIMIT 1 OFFSET ?1)"
    );
    db.execute(&query, [VECTORS_LIMIT])?;
    Ok(())
}

/// The stored form of a vector.
fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// The rows nearest to a query, at most `limit`. Vectors are read in place: only ids and scores are
/// held in memory.
pub(crate) fn nearest(
    mut rows: Rows<'_>,
    query: &[f32],
    limit: usize,
) -> rusqlite::Result<Ranking> {
    let mut ranking = Ranking::new();
    while let Some(row) = rows.next()? {
        let cosine = dot(query, row.get_ref(1)?.as_blob()?);
        if let Some(cosine) = cosine.filter(|cosine| *cosine >= SIMILARITY_MINIMUM) {
            ranking.push((row.get(0)?, f64::from(cosine)));
        }
    }
    ranking.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranking.truncate(limit);
    Ok(ranking)
}

/// The dot product; `None` if the lengths differ.
fn dot(query: &[f32], bytes: &[u8]) -> Option<f32> {
    let (values, rest) = bytes.as_chunks::<4>();
    if values.len() != query.len() || !rest.is_empty() {
        return None;
    }
    // Eight independent sums can be computed in parallel.
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

    fn tables() -> Connection {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch(SCHEMA).unwrap();
        db
    }

    #[test]
    fn the_nearest_come_first_and_unrelated_texts_are_left_out() {
        let db = tables();
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
    }

    #[test]
    fn vectors_belong_to_one_space_and_to_existing_texts() {
        let db = tables();
        let texts = "SELECT 1 UNION SELECT 2 UNION SELECT 3";
        use_space(&db, "a", texts).unwrap();
        assert_eq!((pending(&db).unwrap(), any_of(&db, "a").unwrap()), (vec![1, 2, 3], false));
        delete(&db, "SELECT ?1", 2).unwrap();
        let vector = vec![1.0];
        put_all(&db, [(3, &vector), (2, &vector)]).unwrap();
        assert_eq!((pending(&db).unwrap(), any_of(&db, "a").unwrap()), (vec![1], true));
        use_space(&db, "a", texts).unwrap();
        assert_eq!(pending(&db).unwrap(), [1]);
        use_space(&db, "b", texts).unwrap();
        assert_eq!((pending(&db).unwrap(), any_of(&db, "b").unwrap()), (vec![1, 2, 3], false));
    }

    #[test]
    fn the_number_of_vectors_is_limited() {
        let db = tables();
        let numbers = format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})
             SELECT i FROM n",
            VECTORS_LIMIT + 9
        );
        use_space(&db, "a", &numbers).unwrap();
        let rest: (i64, i64) = db
            .query_row("SELECT min(id), count(*) FROM pending", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(rest, (10, VECTORS_LIMIT));
    }

    #[test]
    fn every_dimension_counts() {
        let one: Vec<f32> = (0..19_u8).map(f32::from).collect();
        assert_eq!(dot(&one, &to_bytes(&one)), Some(2109.0));
    }
}
