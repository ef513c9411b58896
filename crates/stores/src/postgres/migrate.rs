//! The tables and their migrations. A released step is never changed; new ones are added.

use tokio_postgres::Error;

use super::connection::Connection;

/// Each step migrates a database from version n - 1 to version n.
const STEPS: &[&str] = &["
    CREATE SEQUENCE incarnations;
    CREATE SEQUENCE epochs;
    CREATE SEQUENCE session_keys;

    CREATE TABLE nodes (
        name text PRIMARY KEY,
        incarnation bigint NOT NULL UNIQUE,
        advertise text,
        heartbeat timestamptz NOT NULL,
        lease interval NOT NULL,
        shared_workspaces text[] NOT NULL,
        draining boolean NOT NULL DEFAULT false
    ) WITH (fillfactor = 50);

    -- Who may append to a session, and how far its events go: small, because every append updates it.
    CREATE TABLE journals (
        session text PRIMARY KEY,
        key bigint NOT NULL UNIQUE,
        holder bigint,
        epoch bigint NOT NULL,
        begun boolean NOT NULL DEFAULT false,
        head bigint NOT NULL DEFAULT 0,
        at bigint
    ) WITH (fillfactor = 60);
    CREATE INDEX journals_by_holder ON journals (holder) WHERE holder IS NOT NULL;

    CREATE TABLE sessions (
        key bigint PRIMARY KEY,
        id text NOT NULL UNIQUE,
        created bigint NOT NULL,
        updated bigint NOT NULL,
        open boolean NOT NULL,
        workspace text NOT NULL,
        -- The node that has the workspace.
        home text NOT NULL,
        card text NOT NULL
    );
    CREATE INDEX sessions_by_creation ON sessions (created, key);
    CREATE INDEX sessions_by_use ON sessions (updated, key);
    CREATE INDEX sessions_by_workspace ON sessions (workspace, updated, key);
    CREATE INDEX sessions_open ON sessions (key) WHERE open;

    CREATE TABLE events (
        session bigint NOT NULL,
        seq bigint NOT NULL,
        at bigint NOT NULL,
        format smallint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (session, seq)
    );
    CREATE TABLE forks (
        child bigint PRIMARY KEY,
        parent bigint NOT NULL,
        base bigint NOT NULL
    );
    CREATE INDEX forks_by_parent ON forks (parent, base);
    CREATE TABLE snapshots (
        session bigint PRIMARY KEY,
        seq bigint NOT NULL,
        format text NOT NULL,
        body bytea NOT NULL
    );
    CREATE TABLE refs (
        blob text NOT NULL,
        session bigint NOT NULL,
        seq bigint NOT NULL,
        PRIMARY KEY (blob, session, seq)
    );
    CREATE INDEX refs_by_event ON refs (session, seq);
    CREATE TABLE blobs (
        id text PRIMARY KEY,
        -- When the content was last put, or lost a reference.
        used timestamptz NOT NULL,
        body bytea NOT NULL
    );
    CREATE INDEX blobs_by_use ON blobs (used);

    CREATE TABLE aliases (
        space text NOT NULL,
        name text NOT NULL,
        session text NOT NULL,
        PRIMARY KEY (space, name)
    );
    CREATE INDEX aliases_by_session ON aliases (session);
    CREATE TABLE installs (
        key bigint GENERATED ALWAYS AS IDENTITY,
        id text PRIMARY KEY,
        owner text NOT NULL,
        token text NOT NULL UNIQUE,
        created bigint NOT NULL,
        seen bigint NOT NULL,
        system text
    );
    CREATE TABLE preferences (
        space text NOT NULL,
        name text NOT NULL,
        value text NOT NULL,
        PRIMARY KEY (space, name)
    );
    CREATE TABLE artifacts (
        id text PRIMARY KEY,
        owner text,
        mime text NOT NULL,
        size bigint NOT NULL,
        sha256 text NOT NULL,
        created bigint NOT NULL
    );
    CREATE INDEX artifacts_by_age ON artifacts (created);
    CREATE TABLE claims (
        artifact text NOT NULL,
        session text NOT NULL,
        PRIMARY KEY (artifact, session)
    );
    CREATE INDEX claims_by_session ON claims (session);
    CREATE TABLE uploads (
        name text NOT NULL,
        part bigint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (name, part)
    );

    CREATE TABLE runs (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text NOT NULL UNIQUE,
        workspace text NOT NULL,
        status text NOT NULL,
        worker text,
        commands bigint NOT NULL,
        waiting boolean NOT NULL,
        active boolean NOT NULL,
        leased boolean NOT NULL,
        heartbeat bigint,
        updated bigint NOT NULL,
        head bigint NOT NULL,
        progress text NOT NULL
    );
    CREATE INDEX runs_waiting ON runs (workspace, key) WHERE waiting;
    CREATE INDEX runs_active ON runs (workspace, key) WHERE active;
    CREATE INDEX runs_commanded ON runs (worker, key) WHERE commands > 0;
    CREATE INDEX runs_of_worker ON runs (worker, heartbeat) WHERE leased;
    CREATE INDEX runs_leased ON runs (heartbeat) WHERE leased;
    CREATE TABLE run_events (
        run bigint NOT NULL,
        seq bigint NOT NULL,
        at bigint NOT NULL,
        format smallint NOT NULL,
        body bytea NOT NULL,
        PRIMARY KEY (run, seq)
    );

    CREATE TABLE inbox (
        number bigint GENERATED ALWAYS AS IDENTITY,
        key text PRIMARY KEY,
        session text NOT NULL,
        body bytea NOT NULL,
        reply bytea,
        sent timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX inbox_by_session ON inbox (session) WHERE reply IS NULL;
", "
    -- Content without a body is in the object of this name. Each time that content is stored as an object, it
    -- has another name: one that is being deleted is never the one that is stored.
    CREATE SEQUENCE object_names;
    ALTER TABLE blobs ALTER body DROP NOT NULL,
        ADD object text,
        ADD CONSTRAINT blobs_are_somewhere CHECK (object IS NOT NULL OR body IS NOT NULL);
    -- Objects that nobody refers to any more and that are to be deleted.
    CREATE TABLE unused_objects (name text PRIMARY KEY);
"];

/// The newest known version.
pub(super) const NEWEST: usize = STEPS.len();

/// Held during migrations, so that nodes that start at the same time do not both migrate.
const MIGRATION_LOCK: i64 = 0x516e_7474;

/// Migrates the tables; fails if their version is newer.
pub(super) async fn migrate(db: &Connection) -> Result<(), String> {
    let failed = |error: Error| super::reason(&error);
    db.batch("BEGIN").await.map_err(failed)?;
    let done = steps(db).await;
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    db.batch(end).await.map_err(failed)?;
    done
}

async fn steps(db: &Connection) -> Result<(), String> {
    let failed = |error: Error| super::reason(&error);
    let lock = format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})");
    db.batch(&lock).await.map_err(failed)?;
    let meta =
        "CREATE TABLE IF NOT EXISTS quintet_meta (key text PRIMARY KEY, value text NOT NULL)";
    db.batch(meta).await.map_err(failed)?;
    let found = "SELECT value FROM quintet_meta WHERE key = 'schema_version'";
    let found = db.row(found, &[]).await.map_err(failed)?;
    let found = found.map_or(Ok(0), |row| {
        let text: String = row.get(0);
        text.parse().map_err(|_| format!("its schema version is {text:?}, which is no number"))
    })?;
    if found > NEWEST {
        return Err(format!(
            "it has schema version {found}, and this version knows up to {NEWEST}: start the newer \
             version that wrote it, or use another database"
        ));
    }
    if found == NEWEST {
        return Ok(());
    }
    tracing::info!(from = found, to = NEWEST, "migrating the tables");
    for step in &STEPS[found..] {
        db.batch(step).await.map_err(failed)?;
    }
    let note = "INSERT INTO quintet_meta (key, value) VALUES ('schema_version', $1)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.execute(note, &[&NEWEST.to_string()]).await.map_err(failed)?;
    Ok(())
}
