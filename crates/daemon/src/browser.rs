//! The user's browser.

use std::process::Stdio;

/// The program that opens an address in the user's browser.
const OPENER: &str = "xdg-open";

/// Opens an address. Without a desktop, the user opens the printed address.
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
