//! The supervisor alone, called as the daemon's executable is: `quintet-supervise supervise -- …`.
//!
//! It stands in for `quintet` in this crate's tests, and gives commands a home that is not there:
//! a login shell must not run the profile of whoever runs the tests, which may be slow, say
//! things, or leave locks behind when it is killed. Called with `bare` it changes nothing.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|mode| mode == "bare") {
        return quintet_tools::supervisor::main(args);
    }
    let argv = args.skip_while(|arg| arg == "--");
    let homeless = ["/usr/bin/env", "HOME=/nonexistent"].map(OsString::from);
    quintet_tools::supervisor::main(homeless.into_iter().chain(argv))
}
