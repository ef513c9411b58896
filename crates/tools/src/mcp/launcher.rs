//! Starts the processes of servers, in a sandbox unless the definition says otherwise.
//!
//! A sandbox has a folder of the server's own as its home, where the server also keeps what it downloads: nothing
//! that an agent's command or another server can write is run in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::ServerSandbox;
use sha2::{Digest as _, Sha256};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

use super::access::AccessPlanner;
use super::process::{Confined, Process};
use crate::run::{self, Environment};
use crate::sandbox::{self, Confinement, Confiner, Limits, Mode, Permissions, Sandbox};
use crate::{show, supervisor};

/// The folder of the data directory with the servers' own folders.
const FOLDERS: &str = "mcp-servers";
/// The longest part of a server's name in the name of its folder.
const NAME_LIMIT: usize = 64;

/// Where a server works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFolder {
    /// A server of the configuration: in its own folder or, without a sandbox, in this one, the user's home.
    Home(PathBuf),
    /// A server of a workspace or of a session: there.
    Workspace(PathBuf),
}

impl ServerFolder {
    /// The folder.
    pub fn path(&self) -> &Path {
        match self {
            Self::Home(path) | Self::Workspace(path) => path,
        }
    }

    /// The folder if it is a workspace.
    pub fn workspace(&self) -> Option<&Path> {
        match self {
            Self::Home(_) => None,
            Self::Workspace(workspace) => Some(workspace),
        }
    }
}

/// How processes are started.
#[derive(Clone, Debug)]
pub(super) struct ServerLauncher(Arc<Launch>);

#[derive(Debug)]
struct Launch {
    /// The executable that has the subcommands of the supervisor and the sandbox.
    supervisor: PathBuf,
    environment: Environment,
    sandbox: Sandbox,
    data_dir: PathBuf,
    /// Made for the first server, because it tries out the kernel.
    confiner: OnceCell<Arc<Confiner>>,
}

/// A process to start.
#[derive(Debug)]
pub(super) struct ServerCommand<'a> {
    pub(super) name: &'a str,
    pub(super) command: &'a [String],
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) sandbox: &'a ServerSandbox,
    pub(super) folder: &'a ServerFolder,
}

impl ServerLauncher {
    /// Takes the few variables that servers get from this process's environment now.
    pub(super) fn new(supervisor: PathBuf, sandbox: Sandbox, data_dir: PathBuf) -> Self {
        let data_dir = std::path::absolute(&data_dir).unwrap_or(data_dir);
        let environment = Environment::of_this_process();
        // What commands may do says nothing of servers, and a server may run for months.
        let limits = Limits { cpu_seconds: u64::MAX, ..sandbox.limits };
        let (extra_read, extra_write) = (Vec::new(), Vec::new());
        let sandbox = Sandbox { network: false, extra_read, extra_write, limits, ..sandbox };
        let confiner = OnceCell::new();
        Self(Arc::new(Launch { supervisor, environment, sandbox, data_dir, confiner }))
    }

    /// True if a server with this definition runs in a sandbox.
    pub(super) fn confines(&self, sandbox: &ServerSandbox) -> bool {
        sandbox.enabled && self.0.sandbox.mode != Mode::Off
    }

    pub(super) fn sandbox(&self) -> &Sandbox {
        &self.0.sandbox
    }

    /// Starts a server. Fails with the reason.
    pub(super) async fn start(
        &self,
        server: &ServerCommand<'_>,
    ) -> Result<(Process, ChildStdout, ChildStdin), String> {
        let folder = server.folder.path();
        if !folder.is_dir() {
            return Err(format!("{} is not a folder", show::path(folder)));
        }
        if !self.confines(server.sandbox) {
            let mut command = self.0.supervise();
            command.envs(server.env).current_dir(folder).arg("--").args(server.command);
            return Process::start(command, None);
        }
        let keys = format!("mcp.servers.{}", server.name);
        let not_started = |why| {
            format!("not started: {why}; `{keys}.sandbox = false` starts it without a sandbox")
        };
        let (command, confined) = self.confined(server, &keys).await.map_err(not_started)?;
        Process::start(command, Some(confined))
    }

    /// A command line that starts a server in its sandbox.
    async fn confined(
        &self,
        server: &ServerCommand<'_>,
        keys: &str,
    ) -> Result<(Command, Confined), String> {
        let own = self.0.own_folder(server);
        sandbox::private_folder(&own).map_err(|error| format!("{}: {error}", show::path(&own)))?;
        let folder = server.folder.workspace().unwrap_or(&own).to_owned();
        let permissions = self.0.permissions(server, &own)?;
        let confiner = self.confiner().await?;
        let plan = confiner.plan(&folder, &permissions).map_err(|refused| refused.to_string())?;
        let confinement = plan.ok_or("there is no sandbox")?;
        let (command, scratch) = self.0.command(server, &confinement, (&own, &folder))?;
        let (confiner, keys) = (Arc::clone(confiner), keys.to_owned());
        Ok((command, Confined { confiner, keys, folder, permissions, scratch }))
    }

    async fn confiner(&self) -> Result<&Arc<Confiner>, String> {
        let launch = Arc::clone(&self.0);
        let made = self.0.confiner.get_or_try_init(|| {
            spawn_blocking(move || {
                Arc::new(Confiner::new(launch.sandbox.clone(), &launch.supervisor, None))
            })
        });
        made.await.map_err(|error| error.to_string())
    }
}

impl Launch {
    /// The supervisor, to be followed by its options and a command.
    #[expect(clippy::disallowed_methods, reason = "this starts the supervisor itself")]
    fn supervise(&self) -> Command {
        let mut command = Command::new(&self.supervisor);
        command
            .env_clear()
            .envs(self.environment.iter())
            .args([supervisor::SUBCOMMAND, "--forward"]);
        command
    }

    /// Where a server keeps what is its own: by its name and, if it belongs to a workspace, by that.
    fn own_folder(&self, server: &ServerCommand<'_>) -> PathBuf {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let plain = |letter: char| if is_plain(letter) { letter } else { '_' };
        let mut name: String = server.name.chars().take(NAME_LIMIT).map(plain).collect();
        let workspace = server.folder.workspace();
        if workspace.is_some() || name != server.name || name.is_empty() {
            let mut hash = Sha256::new();
            hash.update(server.name);
            if let Some(workspace) = workspace {
                hash.update([0]);
                hash.update(workspace.as_os_str().as_encoded_bytes());
            }
            name = format!("{name}.{}", &hex::encode(hash.finalize())[..16]);
        }
        self.data_dir.join(FOLDERS).join(name)
    }

    /// What a server may do beyond its sandbox, its own folder included.
    fn permissions(&self, server: &ServerCommand<'_>, own: &Path) -> Result<Permissions, String> {
        let home = std::env::home_dir();
        let (workspace, closed) = (server.folder.workspace(), &self.sandbox.closed);
        let planner = AccessPlanner { home: home.as_deref(), workspace, closed };
        let (program, arguments) = server.command.split_first().ok_or("it has no command")?;
        let mut permissions = planner.permissions(arguments, server.sandbox)?;
        permissions.write.push(own.to_owned());
        let path = server.env.get("PATH").map(Into::into).or_else(|| std::env::var_os("PATH"));
        let path: Vec<PathBuf> = std::env::split_paths(&path.unwrap_or_default()).collect();
        permissions.read.extend(planner.program(program, &path));
        Ok(permissions)
    }

    /// The command line of a confined server, and its scratch directory.
    fn command(
        &self,
        server: &ServerCommand<'_>,
        confinement: &Confinement,
        (own, folder): (&Path, &Path),
    ) -> Result<(Command, PathBuf), String> {
        let mut command = self.supervise();
        let confined = run::confine(&mut command, confinement);
        let (policy, scratch) = confined.map_err(|refused| refused.to_string())?;
        let variables = serde_json::to_string(server.env).map_err(|error| error.to_string())?;
        command.env("HOME", own).env(sandbox::VARIABLES, variables);
        // The repository around a workspace may be a separate mount.
        command.env("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1");
        let git = std::env::home_dir().map(|home| home.join(".gitconfig"));
        if let Some(git) = git.filter(|git| git.is_file()) {
            command.env("GIT_CONFIG_GLOBAL", git);
        }
        command.current_dir(folder).arg("--").arg(&self.supervisor);
        command.args([sandbox::SUBCOMMAND, &policy, "--"]).args(server.command);
        // The supervisor removes it.
        Ok((command, scratch.keep()))
    }
}

#[cfg(test)]
mod tests;
