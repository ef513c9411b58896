//! A real PostgreSQL that tests start themselves, one for each test program.
//!
//! The server listens on a socket in a folder of its own and ends with the program, however that ends: a
//! shell watches the other end of a pipe. It is started again if it stops before that.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

mod tls;

pub use tls::TlsServer;

const WATCH: &str = r#"
dir=$1; shift
exec 3<&0 </dev/null
(cat <&3 >/dev/null; touch "$dir/stop"; kill -INT "$(head -1 "$dir/data/postmaster.pid")") 2>/dev/null &
while [ ! -e "$dir/stop" ]; do "$@" >>"$dir/log" 2>&1 3<&-; done
rm -rf "$dir"
"#;

/// A server that runs for as long as this program.
#[derive(Debug)]
pub struct Server {
    dir: PathBuf,
    bin: PathBuf,
    user: Option<&'static str>,
    port: u16,
    _watch: Child,
}

/// The port of servers that listen on a socket in a folder of their own.
const SOCKET_PORT: u16 = 5432;

impl Server {
    /// The server of this program, started when it is first needed.
    ///
    /// # Panics
    /// If PostgreSQL is not installed or does not start.
    pub fn shared() -> &'static Self {
        static SERVER: OnceLock<Server> = OnceLock::new();
        SERVER.get_or_init(Self::start)
    }

    /// A server of one's own, for tests that crash it; it ends when it is dropped.
    ///
    /// # Panics
    /// If PostgreSQL is not installed or does not start.
    pub fn start() -> Self {
        let (dir, user) = Self::folder();
        Self::launch(dir, user, SOCKET_PORT, &["listen_addresses="])
    }

    /// An empty folder of the server's user.
    fn folder() -> (PathBuf, Option<&'static str>) {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("quintet-postgres-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).expect("a folder");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).expect("permissions");
        let user = server_user();
        give(user, &dir);
        (dir, user)
    }

    /// Makes a database below a folder and starts its server with these settings.
    fn launch(dir: PathBuf, user: Option<&'static str>, port: u16, settings: &[&str]) -> Self {
        let (bin, data) = (programs(), dir.join("data"));
        let made = run_as(user, &bin.join("initdb"))
            .args(["-D", path(&data), "-U", "quintet", "-A", "trust", "-N"])
            .args(["-E", "UTF8", "--locale", "C"])
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let mut watch = run_as(user, Path::new("sh"));
        watch.args(["-c", WATCH, "sh", path(&dir)]).arg(bin.join("postgres"));
        watch.args(["-D", path(&data), "-k", path(&dir), "-p", &port.to_string()]);
        // A crash of the server alone loses nothing that the system was given.
        let usual = ["fsync=off", "max_connections=400", "shared_buffers=32MB"];
        for setting in usual.iter().chain(settings) {
            watch.args(["-c", setting]);
        }
        let watch = watch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watch = watch.spawn().expect("a shell");
        let server = Self { dir, bin, user, port, _watch: watch };
        server.wait();
        server
    }

    /// A URL for an empty schema of its own.
    pub fn fresh(&self) -> String {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let schema = format!("test_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
        self.run(&format!("CREATE SCHEMA {schema}"));
        let host = path(&self.dir).replace('/', "%2F");
        format!("postgres://quintet@/postgres?host={host}&options=-csearch_path%3D{schema}")
    }

    /// Runs SQL on the schema that a URL of [`Self::fresh`] names; gives the rows as `psql -At` prints them.
    pub fn run_on(&self, url: &str, sql: &str) -> String {
        let schema = url.rsplit("%3D").next().unwrap_or("public");
        self.run(&format!("SET search_path = {schema}; {sql}"))
    }

    fn run(&self, sql: &str) -> String {
        let mut psql = run_as(self.user, &self.bin.join("psql"));
        psql.args(["-qAt", "-v", "ON_ERROR_STOP=1", "-h", path(&self.dir), "-U", "quintet"]);
        psql.args(["-p", &self.port.to_string()]);
        let done = psql.args(["-c", sql, "postgres"]).output().expect("psql starts");
        assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }

    /// Cuts every connection.
    pub fn cut_connections(&self) {
        self.run(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'",
        );
    }

    /// Stops the server as a crash would, and waits until it is back.
    pub fn crash(&self) {
        let pid = || {
            let file = fs::read_to_string(self.dir.join("data/postmaster.pid")).ok()?;
            file.lines().next().map(String::from)
        };
        let before = pid().expect("it runs");
        let killed = command("kill").args(["-QUIT", &before]).status();
        assert!(killed.is_ok_and(|status| status.success()));
        self.until("end", || pid().as_ref() != Some(&before));
        self.wait();
    }

    /// Waits until the server takes connections.
    fn wait(&self) {
        self.until("start", || {
            let mut ready = run_as(self.user, &self.bin.join("pg_isready"));
            let ready = ready.args(["-q", "-h", path(&self.dir), "-p", &self.port.to_string()]);
            ready.status().is_ok_and(|status| status.success())
        });
    }

    /// Waits for a condition, or fails with the server's log.
    fn until(&self, what: &str, condition: impl Fn() -> bool) {
        for _ in 0..600 {
            if condition() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        panic!("PostgreSQL does not {what}: {log}");
    }
}

/// Where the server's programs are.
fn programs() -> PathBuf {
    let has = |dir: &PathBuf| dir.join("initdb").exists() && dir.join("postgres").exists();
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = installed.map(|it| it.path().join("bin")).filter(has).collect();
    found.sort();
    let search = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&search).find(has);
    found.pop().or(in_path).expect(
        "these tests need PostgreSQL: install Debian's package postgresql (`make setup` does), or have \
         initdb and postgres in PATH",
    )
}

/// The user that the server runs as, where this program is root's: the server refuses to be.
fn server_user() -> Option<&'static str> {
    let root = fs::metadata("/proc/self").is_ok_and(|me| {
        use std::os::unix::fs::MetadataExt as _;
        me.uid() == 0
    });
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let known = |name: &str| users.lines().any(|line| line.starts_with(&format!("{name}:")));
    root.then(|| if known("postgres") { "postgres" } else { "nobody" })
}

/// Has a file or folder belong to the server's user.
fn give(user: Option<&str>, to: &Path) {
    if let Some(user) = user {
        let owned = command("chown").args([user, path(to)]).status();
        assert!(owned.is_ok_and(|status| status.success()), "chown {user}");
    }
}

fn run_as(user: Option<&str>, program: &Path) -> Command {
    let Some(user) = user else { return command(path(program)) };
    let mut run = command("setpriv");
    run.args(["--reuid", user, "--regid", group(user), "--clear-groups", "--"]).arg(program);
    run.current_dir("/");
    run
}

fn group(user: &str) -> &str {
    if user == "nobody" { "nogroup" } else { user }
}

#[expect(clippy::disallowed_methods, reason = "tests start the server themselves")]
fn command(program: &str) -> Command {
    Command::new(program)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("temporary folders have plain names")
}
