//! A desktop session of the tests' own: a bus and a real keyring, far from the user's.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::daemon::quintet;

/// Opens the keyring.
const PASSWORD: &str = "correct horse";

/// A home with a session bus. The keyring ends with the bus.
pub(crate) struct Desktop {
    pub(crate) home: TempDir,
    bus: Child,
    address: String,
}

impl Desktop {
    /// A session whose keyring is open, as after a login.
    pub(crate) fn open() -> Self {
        let desktop = Self::bare();
        desktop.keyring("--unlock");
        desktop
    }

    /// A session that nobody keeps secrets in.
    pub(crate) fn bare() -> Self {
        let home = TempDir::new().unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o700)).unwrap();
        let (bus, address) = bus(home.path());
        Self { home, bus, address }
    }

    /// The next session of the same user, whose keyring is locked.
    pub(crate) fn locked(mut self) -> Self {
        self.end();
        (self.bus, self.address) = bus(self.home.path());
        self.keyring("--start");
        self
    }

    /// Comes back when the keyring answers.
    fn keyring(&self, how: &str) {
        let mut command = program("gnome-keyring-daemon", "gnome-keyring");
        let child = self.enter(command.args([how, "--components=secrets"]));
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(PASSWORD.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// The program in this session.
    pub(crate) fn quintet(&self, arguments: &[&str]) -> Command {
        let mut command = quintet(arguments);
        self.enter(&mut command);
        command
    }

    /// Runs the program with this input.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.quintet(arguments);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that wants no input may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs a program in this session.
    pub(crate) fn enter<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        settle(command, self.home.path()).env("DBUS_SESSION_BUS_ADDRESS", &self.address)
    }

    fn end(&mut self) {
        let _ = self.bus.kill();
        let _ = self.bus.wait();
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        self.end();
    }
}

/// A bus that starts nothing by itself: no keyring of the machine, no prompt on somebody's screen.
fn bus(home: &Path) -> (Child, String) {
    let config = home.join("bus.conf");
    let text = format!(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\
         <busconfig><type>session</type><listen>unix:dir={}</listen><auth>EXTERNAL</auth>\
         <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
         <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
        home.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = program("dbus-daemon", "dbus-daemon");
    settle(&mut command, home)
        .arg("--config-file")
        .arg(config)
        .args(["--nofork", "--print-address"]);
    let mut bus = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (bus, address.trim().into())
}

/// Everything that programs keep is below this home.
pub(crate) fn settle<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
}

fn program(name: &str, package: &str) -> Command {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    assert!(found, "{name} is missing: `make setup` installs {package}, which this test needs");
    Command::new(name)
}
