//! Checks the machine: its kernel and its programs.

use std::path::{Path, PathBuf};

use quintet_kernel::port::Finding;
use quintet_tools::sandbox::{self, Mode};
use rustix::fs::{Access, access};

use crate::open_files;
use crate::options::Options;

/// The open-files limit below which some hundred parallel sessions fail.
const OPEN_FILES_MINIMUM: u64 = 4096;

/// Programs, with their package and purpose.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("bash", "bash", "runs the commands of `shell` and `verify`"),
    ("git", "git", "is needed by git_status and to tell models what changed"),
    ("make", "make", "runs the default check, `make test`"),
    ("dot", "graphviz", "draws Graphviz diagrams"),
];

pub(super) fn check(options: &Options, environment: &[(String, String)]) -> Vec<Finding> {
    let path = environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.as_str()).unwrap_or_default();
    let mut findings = vec![confinement(options.sandbox.mode)];
    findings.extend(gaps(options.sandbox.mode));
    findings.push(files());
    findings.push(open_files(open_files::limit()));
    findings.extend(PROGRAMS.into_iter().map(|row| program(path, row)));
    findings
}

fn confinement(mode: Mode) -> Finding {
    let report = sandbox::report(Path::new("/proc/self/exe"));
    let namespaces = if report.namespaces { "namespaces, " } else { "no namespaces, " };
    let has = match (report.landlock, report.seccomp) {
        (Some(version), true) => format!("Landlock {version} and seccomp"),
        (Some(version), false) => format!("Landlock {version}, no seccomp"),
        (None, true) => "seccomp, no Landlock".to_owned(),
        (None, false) => "neither Landlock nor seccomp".to_owned(),
    };
    let has = format!("{namespaces}{has}");
    let whole = report.missing().is_empty();
    match mode {
        Mode::Off => {
            let remedy = "set sandbox.mode to \"prefer\" or \"require\"";
            Finding::warning("sandbox", "off: commands can do everything you can", remedy)
        }
        Mode::Prefer | Mode::Require if whole => Finding::ok("sandbox", has),
        Mode::Prefer => Finding::warning(
            "sandbox",
            has,
            "use Linux 6.12 or newer with Landlock switched on (lsm=)",
        ),
        Mode::Require if (report.landlock.is_some() || report.namespaces) && report.seccomp => {
            Finding::warning("sandbox", has, "use Linux 6.12 or newer")
        }
        Mode::Require => Finding::error(
            "sandbox",
            format!("{has}, and sandbox.mode is \"require\": no command will run"),
            "use Linux 5.13 or newer with Landlock switched on, or set sandbox.mode to \"prefer\"",
        ),
    }
}

fn gaps(mode: Mode) -> Vec<Finding> {
    let remedy = "use a newer kernel; until then approve commands with care";
    let missing = if mode == Mode::Off {
        Vec::new()
    } else {
        sandbox::report(Path::new("/proc/self/exe")).missing()
    };
    missing.into_iter().map(|gap| Finding::warning("sandbox", gap, remedy)).collect()
}

fn files() -> Finding {
    if sandbox::opens_beneath() {
        Finding::ok("file tools", "files are opened beneath the workspace (openat2)")
    } else {
        Finding::error(
            "file tools",
            "this kernel cannot open files beneath a folder, so no file tool will work",
            "use Linux 5.6 or newer, and a container that allows openat2",
        )
    }
}

fn open_files(limit: Option<u64>) -> Finding {
    match limit {
        None => Finding::ok("open files", "unlimited"),
        Some(limit) if limit < OPEN_FILES_MINIMUM => Finding::warning(
            "open files",
            format!("{limit} at once, which many sessions and connections may exceed"),
            format!(
                "raise the hard limit to {OPEN_FILES_MINIMUM} or more (ulimit -Hn, LimitNOFILE=)"
            ),
        ),
        Some(limit) => Finding::ok("open files", format!("{limit} at once")),
    }
}

fn program(path: &str, (name, package, why): (&'static str, &str, &str)) -> Finding {
    match find(path, name) {
        Some(found) => Finding::ok(name, found.display().to_string()),
        None => {
            Finding::warning(name, format!("not found; it {why}"), format!("install {package}"))
        }
    }
}

/// The first executable program of that name.
fn find(path: &str, name: &str) -> Option<PathBuf> {
    let places = path.split(':').filter(|folder| !folder.is_empty());
    places
        .map(|folder| Path::new(folder).join(name))
        .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok())
}
