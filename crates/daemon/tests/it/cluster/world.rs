//! Several daemons on one PostgreSQL, all of it real.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::Arc;

use quintet_testkit::model_server::ModelServer;
use quintet_testkit::postgres::Server;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::client::Client;
use crate::daemon::{quintet, serve};

/// Seconds after which a silent node has lost its sessions.
pub(super) const LEASE_SECONDS: u64 = 2;

/// Held by the test that runs: a node that gets no time for long enough loses its leases.
static ALONE: Mutex<()> = Mutex::const_new(());

/// The database, the model, and a workspace that all nodes have.
pub(super) struct Site {
    pub(super) postgres: Server,
    store: String,
    model: ModelServer,
    home: TempDir,
    workspace: PathBuf,
    extra: String,
    _alone: MutexGuard<'static, ()>,
}

/// A daemon.
pub(super) struct Node {
    site: Arc<Site>,
    name: String,
    advertise: String,
    running: Option<Running>,
}

struct Running {
    child: Child,
    base: String,
}

impl Site {
    pub(super) async fn new(extra: &str) -> Arc<Self> {
        let alone = ALONE.lock().await;
        let home = TempDir::new().unwrap();
        let workspace = home.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let extra = if extra.is_empty() {
            "[approval]\nkinds = []\n[verify]\nauto = false\n"
        } else {
            extra
        };
        let (postgres, model) = (Server::start(), ModelServer::start().await.unwrap());
        let (store, extra) = (postgres.fresh(), extra.into());
        Arc::new(Self { postgres, store, model, home, workspace, extra, _alone: alone })
    }

    /// Sessions whose events are not numbered from 1 on without gaps.
    pub(super) fn gaps(&self) -> u64 {
        let gaps = "SELECT count(*) FROM (SELECT session FROM events GROUP BY session
            HAVING count(*) <> max(seq) OR min(seq) <> 1) AS gaps";
        self.postgres.run_on(&self.store, gaps).parse().unwrap()
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }
}

impl Node {
    /// A running node.
    pub(super) fn start(site: &Arc<Site>, name: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let advertise = format!("http://{free}");
        let mut node = Self { site: Arc::clone(site), name: name.into(), advertise, running: None };
        node.restart();
        node
    }

    fn config(&self) -> PathBuf {
        self.site.home.path().join(format!("{}.toml", self.name))
    }

    pub(super) fn restart(&mut self) {
        let Site { store, model, home, workspace, extra, .. } = &*self.site;
        let config = format!(
            "data_dir = {:?}\ndefault_model = \"fake/fake\"\n\
             [listen]\nharness = \"127.0.0.1:0\"\njarvis = \"off\"\nagent = \"off\"\n\
             agent_health = \"off\"\nwindie = \"off\"\nconsole = \"off\"\nopenai = \"off\"\nterminal = \"off\"\n\
             [store]\nurl = {:?}\n\
             [node]\nname = {:?}\nadvertise = {:?}\nlease_seconds = {LEASE_SECONDS}\n\
             shared_workspaces = [{:?}]\n\
             [providers.fake]\napi = \"openai-chat\"\nbase_url = \"{}\"\napi_key = \"x\"\n{extra}",
            home.path().join(&self.name),
            store,
            self.name,
            self.advertise,
            workspace,
            model.base_url(),
        );
        std::fs::write(self.config(), config).unwrap();
        let config = self.config();
        let (child, ready) = serve(
            quintet(&["serve", "--config", config.to_str().unwrap()])
                .env("QUINTET_LOG", std::env::var("CLUSTER_LOG").unwrap_or("error".into()))
                .current_dir(home.path()),
        );
        let base = ready["listeners"]["harness"].as_str().unwrap().to_owned();
        self.running = Some(Running { child, base });
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.running.as_ref().unwrap().base)
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        let mut running = self.running.take().unwrap();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
    }

    /// `kill`, and waits for the end.
    pub(super) fn terminate(&mut self) {
        self.signal(Signal::TERM);
        self.running.take().unwrap().child.wait().unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        let child = &self.running.as_ref().unwrap().child;
        kill_process(Pid::from_child(child), signal).unwrap();
    }

    /// `quintet nodes …` with this node's configuration.
    pub(super) fn nodes(&self, arguments: &[&str]) -> Output {
        let config = self.config();
        let all: Vec<&str> = ["nodes"]
            .iter()
            .chain(arguments)
            .chain(&["--config", config.to_str().unwrap()])
            .copied()
            .collect();
        quintet(&all).output().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}
