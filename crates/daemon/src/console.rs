//! `quintet console`: prints where the web console is, and opens it in the browser.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Result, bail};
use quintet_dialects::WEB_CONSOLE;

use crate::cli::Flags;
use crate::options;

/// The program that opens an address in the user's browser.
const OPENER: &str = "xdg-open";

/// `quintet console`. Fails if the console is off or has no fixed port.
pub(crate) fn main(flags: &Flags) -> Result<()> {
    let options = options::read_closed(flags)?;
    let Some(address) = options.address(WEB_CONSOLE) else {
        bail!("listen.{WEB_CONSOLE} is off");
    };
    if address.port() == 0 {
        bail!("listen.{WEB_CONSOLE} names no port: the ready line of the daemon says where it is");
    }
    let host = match address.ip() {
        ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
        ip if ip.is_ipv6() => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    let url = format!("http://{host}:{}", address.port());
    writeln!(std::io::stdout(), "{url}")?;
    open(&url);
    Ok(())
}

/// Opens the address. On a machine without a desktop the printed address is all there is.
#[expect(
    clippy::disallowed_methods,
    reason = "the browser is the user's program, not a command of an agent"
)]
pub(crate) fn open(url: &str) {
    let mut command = std::process::Command::new(OPENER);
    let streams = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = streams.status() {
        eprintln!("{OPENER} cannot be run ({error}): open the address in a browser");
    }
}
