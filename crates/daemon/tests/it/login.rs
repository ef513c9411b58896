//! A login session for tests: a session bus and a real keyring, separate from the user's.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::daemon::quintet;

/// The password of the keyring.
const PASSWORD: &str = "correct horse";
/// Longer than a keyring takes to start.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A home with a session bus and, usually, a keyring.
pub(crate) struct Login {
    pub(crate) home: TempDir,
    bus: Child,
    address: String,
    keyring: Option<Child>,
}

impl Login {
    /// A session with an unlocked keyring, as after a login.
    pub(crate) fn open() -> Self {
        let mut login = Self::without_keyring();
        login.start_keyring("--unlock");
        login
    }

    /// A session without a keyring.
    pub(crate) fn without_keyring() -> Self {
        let home = TempDir::new().unwrap();
        let (bus, address) = bus(home.path());
        Self { home, bus, address, keyring: None }
    }

    /// The next session of the same user, with a locked keyring.
    pub(crate) fn locked(mut self) -> Self {
        self.end();
        (self.bus, self.address) = bus(self.home.path());
        self.start_keyring("--start");
        self
    }

    /// Starts the keyring and waits until it answers. It stays in the foreground, because a
    /// background process could outlive the test.
    fn start_keyring(&mut self, how: &str) {
        let mut command = program("gnome-keyring-daemon", "gnome-keyring");
        let command = self.enter(command.args([how, "--foreground", "--components=secrets"]));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let typed = child.stdin.take().unwrap().write_all(PASSWORD.as_bytes());
        self.keyring = Some(child);
        typed.unwrap();
        let deadline = Instant::now() + START_TIMEOUT;
        while !self.run(&["keys", "list"], "").status.success() {
            assert!(Instant::now() < deadline, "the keyring does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
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
        // A program that reads no input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    /// Runs a program in this session.
    pub(crate) fn enter<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        set_home(command, self.home.path()).env("DBUS_SESSION_BUS_ADDRESS", &self.address)
    }

    fn end(&mut self) {
        for child in self.keyring.iter_mut().chain([&mut self.bus]) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        self.end();
    }
}

/// A bus without service activation: no keyring of the machine, no prompt on the user's screen.
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
    set_home(&mut command, home)
        .arg("--config-file")
        .arg(config)
        .args(["--nofork", "--print-address"]);
    let mut bus = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut address = String::new();
    BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (bus, address.trim().into())
}

/// Sets the folders of a program to be below this home.
pub(crate) fn set_home<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command
        .env("HOME", home)
        .env("XDG_RUNTIME_DIR", home)
        .env("XDG_CONFIG_HOME", home.join("config"))
        .env("XDG_DATA_HOME", home.join("data"))
        .env_remove("DBUS_SESSION_BUS_ADDRESS")
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
}

/// A program that ends with the test, even if the test is killed.
fn program(name: &str, package: &str) -> Command {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    assert!(found, "{name} is missing: `make setup` installs {package}, which this test needs");
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", name]);
    command
}
