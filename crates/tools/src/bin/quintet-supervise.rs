//! The supervisor alone, called as the daemon's executable is: `quintet-supervise supervise -- …`.
//!
//! Replaces `quintet` in this crate's tests, and gives commands a home that does not exist: a login shell must
//! not run the profile of the user who runs the tests, which may be slow, print text, or leave locks behind when
//! it is killed. With `bare` the home is not changed, `confine` is the sandbox, and `draw` draws.

use std::ffi::OsString;
use std::process::ExitCode;

use quintet_tools::sandbox::Network;
use quintet_tools::supervisor::{Control, Setup};
use quintet_tools::{diagram, sandbox, supervisor};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    match args.next().as_ref().and_then(|mode| mode.to_str()) {
        Some("bare") => return supervisor::main(Setup::default(), args),
        Some("serve") => {
            let setup = Setup { control: Control::ForwardInput, ..Setup::default() };
            return supervisor::main(setup, args);
        }
        Some("confine") => {
            let awaits = args.next_if(|arg| arg == "--await-command").is_some();
            return sandbox::main(args, awaits);
        }
        Some("draw") => return diagram::main(args.skip(1)),
        _ => (),
    }
    let mut setup = Setup::default();
    while let Some(arg) = args.next_if(|arg| arg != "--") {
        match arg.to_str() {
            Some("--confined") => setup.confined = true,
            Some("--await-command") => setup.control = Control::AwaitCommand,
            Some("--forward") => setup.control = Control::ForwardInput,
            Some("--scratch") => setup.scratch = args.next().map(Into::into),
            Some("--namespaces") => {
                let word = args.next().unwrap_or_default();
                setup.namespaces = word.to_str().and_then(Network::parse);
            }
            Some(_) | None => {}
        }
    }
    let argv = args.skip_while(|arg| arg == "--");
    let homeless = ["/usr/bin/env", "HOME=/nonexistent"].map(OsString::from);
    supervisor::main(setup, homeless.into_iter().chain(argv))
}
