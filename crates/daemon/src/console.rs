//! `quintet console`: prints where the web console is, and opens it in the browser.

use std::io::Write as _;

use anyhow::{Result, bail};
use quintet_dialects::WEB_CONSOLE;

use crate::browser::open;
use crate::cli::Flags;
use crate::options;

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
