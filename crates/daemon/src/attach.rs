//! Attaches standard input and output to a listener of the daemon that serves the data directory.
//!
//! Editors and tools start a program and communicate with it on its standard input and output. That program may
//! be killed at any time, so it keeps no state: it copies bytes to and from a Unix socket of the daemon. If no
//! daemon is running, it starts one in a process session of its own, with its log in the data directory.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read, Seek as _, SeekFrom, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;
use quintet_dialects::transport::uds::connect;
use quintet_stores::Error as StoreError;

use crate::cli::Flags;
use crate::options::{self, ListenAddress, Options};

/// The daemon's standard error, in the data directory.
const LOG_FILE: &str = "daemon.log";
/// Size from which the log is rotated before the daemon starts.
const LOG_BYTES_LIMIT: u64 = 8 * 1024 * 1024;
/// Bytes of the log that are shown if the daemon does not start.
const LOG_TAIL_BYTES_LIMIT: u64 = 4096;
/// The exit code of a daemon whose data directory another daemon serves.
const EXIT_DATA_DIR_IN_USE: u8 = 75;
/// Maximum attempts to reach a daemon that another program is starting, and the delay between them.
const CONNECT_TRIES_LIMIT: u32 = 300;
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Copies between standard input and output and the listener of this name until either side ends.
/// Fails if the listener is off, or no daemon can be reached or started.
pub(crate) fn main(flags: &Flags, listener: &str) -> Result<()> {
    copy_both(open(flags, listener)?)
}

/// Connects to the listener of this name, of the daemon that serves the data directory; starts that
/// daemon if none runs. Fails if the listener is off, or no daemon can be reached or started.
pub(crate) fn open(flags: &Flags, listener: &str) -> Result<UnixStream> {
    let options = options::read_closed(flags)?;
    let path = socket(&options, listener)?;
    reach(flags, &options.data_dir, &path.display().to_string(), || connect(&path))
}

/// Starts the daemon that serves the data directory, unless its TCP address is already in use.
/// Fails if the daemon cannot be started, or does not listen there.
pub(crate) fn ensure_listening(flags: &Flags, data_dir: &Path, address: SocketAddr) -> Result<()> {
    reach(flags, data_dir, &address.to_string(), || TcpStream::connect(address)).map(drop)
}

/// The exit code of a command that failed: a special one if another daemon serves the data
/// directory.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    match error.downcast_ref::<StoreError>() {
        Some(StoreError::InUse(_)) => ExitCode::from(EXIT_DATA_DIR_IN_USE),
        Some(_) | None => ExitCode::FAILURE,
    }
}

fn socket(options: &Options, listener: &str) -> Result<PathBuf> {
    let found = options.listeners.iter().find(|known| known.spec.name == listener);
    match found.map(|found| &found.place) {
        Some(ListenAddress::Unix(path)) => Ok(path.clone()),
        Some(ListenAddress::Tcp(address)) => {
            bail!("listen.{listener} = {address} is not a Unix socket")
        }
        None => bail!("listen.{listener} is \"off\": set it to \"auto\""),
    }
}

/// Connects to the daemon and starts it if none runs. If another program is doing the same, its
/// daemon is used.
fn reach<T>(
    flags: &Flags,
    data_dir: &Path,
    address: &str,
    connect: impl Fn() -> io::Result<T>,
) -> Result<T> {
    if let Ok(stream) = connect() {
        return Ok(stream);
    }
    let mut log =
        open_log(data_dir).with_context(|| data_dir.join(LOG_FILE).display().to_string())?;
    let start = log.seek(SeekFrom::End(0))?;
    let mut child = spawn(flags, &log)?;
    if is_ready(&mut child)? {
        return connect().with_context(|| address.to_owned());
    }
    if child.wait()?.code() != Some(EXIT_DATA_DIR_IN_USE.into()) {
        let shown = tail(&log, start).unwrap_or_default();
        bail!("the daemon did not start:\n{}", shown.trim_end());
    }
    for _ in 0..CONNECT_TRIES_LIMIT {
        if let Ok(stream) = connect() {
            return Ok(stream);
        }
        thread::sleep(RETRY_DELAY);
    }
    bail!(
        "another daemon serves {}, and nothing listens at {address}: stop it, or set its listen key",
        data_dir.display(),
    )
}

/// True once the daemon has printed its ready line; false if it ended without one.
fn is_ready(child: &mut Child) -> Result<bool> {
    let stdout = child.stdout.take().context("the daemon has no standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    Ok(line.ends_with('\n'))
}

fn spawn(flags: &Flags, log: &File) -> Result<Child> {
    let program = std::env::current_exe().context("the path of this program")?;
    #[expect(clippy::disallowed_methods, reason = "the daemon is not a command of an agent")]
    let mut command = std::process::Command::new(program);
    command.args(["serve", "--detached"]);
    if let Some(config) = &flags.config {
        command.arg("--config").arg(std::path::absolute(config)?);
    }
    if let Some(data_dir) = &flags.data_dir {
        command.arg("--data-dir").arg(std::path::absolute(data_dir)?);
    }
    for pair in &flags.listen {
        command.arg("--listen").arg(pair);
    }
    for pair in &flags.set {
        command.arg("--set").arg(pair);
    }
    if let Some(format) = flags.log_format.to_possible_value() {
        command.arg("--log-format").arg(format.get_name());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.try_clone()?);
    command.spawn().context("the daemon could not be started")
}

/// Opens the log for appending; rotates a long one.
fn open_log(data_dir: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir)?;
    let path = data_dir.join(LOG_FILE);
    if fs::metadata(&path).is_ok_and(|file| file.len() > LOG_BYTES_LIMIT) {
        fs::rename(&path, data_dir.join(format!("{LOG_FILE}.1")))?;
    }
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

/// The end of what was logged after a position.
fn tail(mut log: &File, start: u64) -> io::Result<String> {
    let end = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(start.max(end.saturating_sub(LOG_TAIL_BYTES_LIMIT))))?;
    let mut bytes = Vec::new();
    log.take(LOG_TAIL_BYTES_LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Copies in both directions. The end of standard input is passed on; the daemon then sends its
/// last output and closes the connection.
fn copy_both(stream: UnixStream) -> Result<()> {
    let input = stream.try_clone()?;
    let ended = Arc::new(AtomicBool::new(false));
    let input_ended = Arc::clone(&ended);
    // The thread may be blocked in a read when the daemon ends the connection; it ends with the process.
    thread::spawn(move || {
        // A lost connection is noticed by the other direction.
        let _ = copy(&mut io::stdin().lock(), &mut &input);
        input_ended.store(true, Ordering::SeqCst);
        let _ = input.shutdown(Shutdown::Write);
    });
    copy(&mut &stream, &mut io::stdout().lock()).context("the connection to the daemon")?;
    if ended.load(Ordering::SeqCst) { Ok(()) } else { bail!("the daemon closed the connection") }
}

/// Copies until the end of input, without buffering.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(&buffer[..length])?;
        to.flush()?;
    }
}

#[cfg(test)]
mod tests;
