//! Commands that try to get out of the sandbox.
//!
//! Every attempt is made twice: without a sandbox it must succeed, or it would prove nothing, and
//! with one it must fail. Where the kernel lacks what stops it, the probe must say so.

use std::collections::BTreeSet;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::Command;

use quintet_tools::sandbox::{Mode, Sandbox, probe};
use rustix::pty::OpenptFlags;
use serde_json::json;
use tempfile::TempDir;

use crate::bench::{Bench, SUPERVISOR, has_namespaces, json as report, until};

/// What stops an attempt.
#[derive(Clone, Copy)]
enum Stop {
    /// Landlock, from this version on.
    Landlock(i32),
    Seccomp,
}

impl Stop {
    fn is_there(self) -> bool {
        match self {
            Self::Landlock(version) => {
                has_namespaces() || probe().landlock.is_some_and(|here| here >= version)
            }
            Self::Seccomp => probe().seccomp,
        }
    }
}

/// True if these tests are run in a sandbox themselves, which then stops some attempts by itself.
fn is_confined() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    !status.lines().any(|line| line == "Seccomp:\t0")
}

async fn code(sandbox: Sandbox, command: &str) -> i64 {
    let bench = Bench::in_sandbox(sandbox);
    let input = json!({ "command": command, "timeout_seconds": 120 });
    let output = bench.run("shell", input).await;
    let report = report(&output);
    eprintln!("{command}\n  -> {} {}", report["exit_code"], report["stderr"]);
    report["exit_code"].as_i64().unwrap()
}

fn free() -> Sandbox {
    Sandbox { mode: Mode::Off, ..Sandbox::default() }
}

async fn check(stop: Stop, command: &str) {
    let succeeds = check_where_possible(stop, command).await;
    assert!(succeeds || is_confined(), "it proves nothing: {command}");
}

/// For attempts that only succeed with rights that not every user has, or on kernels that not everybody
/// has. True if this one succeeds without the sandbox.
async fn check_where_possible(stop: Stop, command: &str) -> bool {
    let succeeds = code(free(), command).await == 0;
    if !succeeds {
        eprintln!("NOT PROVEN, it cannot be done here without a sandbox either: {command}");
    }
    caught(stop, command).await;
    succeeds
}

async fn caught(stop: Stop, command: &str) {
    if stop.is_there() {
        assert_ne!(code(Sandbox::default(), command).await, 0, "it got out: {command}");
    } else {
        eprintln!("NOT CHECKED, this kernel cannot: {command}");
        assert!(!probe().missing().is_empty(), "the gap is not reported: {command}");
    }
}

/// A directory of somebody else's.
fn outside() -> TempDir {
    let dir = TempDir::new().unwrap();
    for name in ["secret", "cut", "gone", "moved"] {
        std::fs::write(dir.path().join(name), "hush").unwrap();
    }
    dir
}

#[tokio::test]
async fn files_outside_cannot_be_read() {
    let dir = outside();
    let out = dir.path().display();
    for command in [
        format!("cat {out}/secret"),
        format!("ls {out}"),
        format!("ln -s {out}/secret link && cat link"),
        format!("ln -s {out} link && cat link/secret"),
        format!("cat $(pwd -P)/../$(basename {out})/secret"),
        format!("cat /proc/self/root{out}/secret"),
        format!("cat /proc/$$/cwd/../$(basename {out})/secret"),
        format!("cp {out}/secret . && cat secret"),
        format!("cp /bin/true {out}/run; {out}/run"),
    ] {
        check(Stop::Landlock(1), &command).await;
    }
}

#[tokio::test]
async fn secrets_of_the_system_cannot_be_read_by_root() {
    let is_readable = std::fs::read("/etc/shadow").is_ok_and(|text| !text.is_empty());
    if !is_readable || !has_namespaces() {
        eprintln!(
            "NOT CHECKED, /etc/shadow cannot be read here anyway, or there are no namespaces"
        );
        return;
    }
    check(Stop::Seccomp, "grep -q . /etc/shadow").await;
}

#[tokio::test]
async fn files_outside_cannot_be_changed() {
    let dir = outside();
    let out = dir.path().display();
    for (version, command) in [
        (1, format!("echo x > {out}/new")),
        (1, format!("echo x >> {out}/secret")),
        (3, format!("truncate -s 0 {out}/cut")),
        (1, format!("rm -f {out}/gone; [ ! -e {out}/gone ] && touch {out}/gone")),
        (1, format!("mkdir {out}/dir && rmdir {out}/dir")),
        (1, format!("ln {out}/secret hard && echo x >> hard")),
        (1, format!("mv {out}/moved . && mv moved {out}/moved")),
        (1, format!("ln -s {out} link && echo x > link/new2")),
        (1, format!("mkfifo {out}/fifo && rm {out}/fifo")),
    ] {
        check(Stop::Landlock(version), &command).await;
    }
    if Stop::Landlock(3).is_there() {
        assert!(dir.path().join("gone").exists() && dir.path().join("moved").exists());
    }
    let name = format!("/tmp/quintet-escape-{}", std::process::id());
    for (sandbox, is_there) in [(free(), true), (Sandbox::default(), false)] {
        code(sandbox, &format!("touch {name}")).await;
        assert_eq!(Path::new(&name).exists(), is_there);
        let _not_there = std::fs::remove_file(&name);
    }
    for command in [
        format!("chmod 755 {out} && chmod 700 {out}"),
        format!("chmod 600 {out}/secret"),
        format!("touch -d 2001-01-01 {out}/secret"),
        format!("chown $(id -u) {out}/secret"),
        "chmod 644 /etc/passwd".to_owned(),
    ] {
        check(Stop::Landlock(1), &command).await;
    }
    // A folder and a link that leads out take each other's place.
    #[cfg(target_arch = "x86_64")]
    let race = format!(
        "mkdir d && echo mine > d/secret && ln -s {out} l && for i in $(seq 9); do perl -e '{EXCHANGE}'; \
         cat d/secret; done | grep -q hush"
    );
    #[cfg(target_arch = "x86_64")]
    check(Stop::Landlock(1), &race).await;
    check_where_possible(Stop::Landlock(1), "mknod null c 1 3 && echo x > null").await;
}

/// Makes a folder and a link take each other's place, in Perl.
#[cfg(target_arch = "x86_64")]
const EXCHANGE: &str = "my ($d, $l) = (\"d\", \"l\"); syscall(316, -100, $d, -100, $l, 2);";

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn what_is_recorded_is_never_read_through_a_link_that_leads_out() {
    let dir = outside();
    let bench = Bench::new();
    bench.files(&[("d/secret", "mine")]);
    std::os::unix::fs::symlink(dir.path(), bench.path().join("l")).unwrap();
    let shell = async |command: &str| {
        let output =
            bench.run("shell", json!({ "command": command, "timeout_seconds": 120 })).await;
        let all = crate::bench::changed(&output).join("\n");
        assert!(!all.contains("hush"), "{command}: {all}");
    };
    let racing = async {
        let seen = || std::fs::read_to_string(bench.path().join("d/secret")).ok();
        // Whoever goes by names is led out.
        until("the race is on", || seen().filter(|text| text == "hush")).await;
        for n in 0..20 {
            shell(&format!("echo {n} > n; echo {n} >> d/secret; touch l/secret; true")).await;
        }
        bench.write("stop", "");
    };
    let exchange = format!("perl -e 'while (!-e \"stop\") {{ {EXCHANGE} }}'");
    tokio::join!(shell(&exchange), racing);
}

#[tokio::test]
async fn other_processes_are_out_of_reach() {
    let me = std::process::id();
    let here = std::env::current_exe().unwrap();
    for (stop, command) in [
        (Stop::Landlock(1), format!("cat /proc/{me}/environ")),
        (Stop::Landlock(1), format!("cat /proc/{me}/maps")),
        (Stop::Landlock(1), format!("readlink /proc/{me}/fd/1")),
        (Stop::Landlock(1), format!("cat /proc/{me}/root{} > copy", here.display())),
        (Stop::Landlock(6), format!("kill -CONT {me}")),
        (
            Stop::Landlock(6),
            "p=$(grep PPid /proc/$PPID/status | cut -f2); [ $p != 0 ] && kill -CONT $p".to_owned(),
        ),
    ] {
        check(stop, &command).await;
    }
    check_where_possible(Stop::Landlock(1), &format!("exec 3< /proc/{me}/mem")).await;
    check_where_possible(Stop::Seccomp, &format!("prlimit --pid {me} --rss=unlimited")).await;
    // The sandbox is no obstacle among the command's own.
    let own = "sleep 100 & kill -TERM $! && wait $!; [ $? = 143 ] && cat /proc/$$/environ";
    assert_eq!(code(Sandbox::default(), own).await, 0);
}

#[tokio::test]
async fn the_network_is_out_of_reach_unless_it_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = listener.local_addr().unwrap().port();
    let udp = socket.local_addr().unwrap().port();
    socket.set_nonblocking(true).unwrap();
    let dial = format!("exec 3<>/dev/tcp/127.0.0.1/{tcp}");
    check(Stop::Seccomp, &dial).await;
    let allowed = || Sandbox { network: true, ..Sandbox::default() };
    assert_eq!(code(allowed(), &dial).await, 0, "it is allowed: {dial}");
    let send = format!("exec 3<>/dev/udp/127.0.0.1/{udp} && echo x >&3");
    for (sandbox, arrives) in [(allowed(), true), (Sandbox::default(), false)] {
        code(sandbox, &send).await;
        assert_eq!(socket.recv(&mut [0; 8]).is_ok(), arrives);
    }
    let bind =
        perl("socket($s, AF_INET, SOCK_STREAM, 0) && bind($s, sockaddr_in(0, INADDR_LOOPBACK))");
    assert_eq!(code(Sandbox::default(), &bind).await == 0, has_namespaces());
    check_where_possible(Stop::Seccomp, &perl("socket($s, AF_INET, SOCK_RAW, 1)")).await;
}

#[tokio::test]
async fn unix_sockets_are_out_of_reach_whatever_the_network() {
    let dir = outside();
    let (stream, datagram) = (dir.path().join("stream"), dir.path().join("datagram"));
    let name = format!("quintet-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _stream = UnixListener::bind(&stream).unwrap();
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    let pair = "socketpair($s, $t, AF_UNIX, SOCK_DGRAM, 0)";
    for command in [
        dial("socket($s, AF_UNIX, SOCK_STREAM, 0)", &quoted(&stream)),
        dial("socket($s, AF_UNIX, SOCK_STREAM, 0)", &format!("\"\\0{name}\"")),
        dial("socket($s, AF_UNIX, SOCK_DGRAM, 0)", &quoted(&datagram)),
        dial(pair, &quoted(&datagram)),
    ] {
        check(Stop::Seccomp, &command).await;
        let network = Sandbox { network: true, ..Sandbox::default() };
        assert_ne!(code(network, &command).await, 0, "it got out: {command}");
    }
    let pair = perl("socketpair($s, $t, AF_UNIX, SOCK_STREAM, 0)");
    assert_eq!(code(Sandbox::default(), &pair).await, 0);
}

#[tokio::test]
async fn terminals_and_shared_memory_of_others_are_out_of_reach() {
    let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&terminal).unwrap();
    rustix::pty::unlockpt(&terminal).unwrap();
    let name = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
    let name = name.to_str().unwrap();
    check(Stop::Landlock(1), &format!("echo x > {name}")).await;
    check(Stop::Landlock(1), &format!("exec 3< {name}")).await;
    let shared = format!("/dev/shm/quintet-{}", std::process::id());
    std::fs::write(&shared, "hush").unwrap();
    if has_namespaces() {
        check(Stop::Landlock(1), &format!("cat {shared}")).await;
    }
    std::fs::remove_file(&shared).unwrap();
}

/// A process in a user namespace of its own.
#[cfg(target_arch = "x86_64")]
const CLONE_USER: &str =
    "syscall(435, $a = pack(\"Q8\", 0x10000000, 0, 0, 0, 17, 0, 0, 0), 64) >= 0";

#[tokio::test]
async fn the_kernel_is_out_of_reach() {
    for command in [
        "unshare --user true",
        "unshare --user --map-root-user --mount mount -t tmpfs none .",
        "unshare --mount true",
        "unshare --net true",
        "mount -t tmpfs none . && umount .",
    ] {
        check_where_possible(Stop::Seccomp, command).await;
    }
    // CLONE_NEWUSER by clone3, whose flags no filter can see.
    #[cfg(target_arch = "x86_64")]
    check_where_possible(Stop::Seccomp, &perl(CLONE_USER)).await;
    // PTRACE_TRACEME, whose first argument is 0, and its x32 twin.
    #[cfg(target_arch = "x86_64")]
    check(Stop::Seccomp, &perl("syscall(101, 0, 0, 0, 0) == 0")).await;
    #[cfg(target_arch = "x86_64")]
    check_where_possible(Stop::Seccomp, &perl("syscall(0x40000000 + 521, 0, 0, 0, 0) == 0")).await;
}

/// Runs a command without a sandbox and in one of Landlock and seccomp alone: whether it succeeds.
#[expect(clippy::disallowed_methods, reason = "it starts the sandbox alone")]
fn without_namespaces(own: &Path, command: &str) -> [bool; 2] {
    let policy = json!({
        "mode": "Require", "network": false, "read": ["/usr", "/bin", "/lib", "/lib64", "/etc"],
        "write": [own], "limits": { "memory": 8_000_000_000_u64, "file": 1_000_000, "processes": 4096,
        "open_files": 99, "cpu_seconds": 9 },
    });
    let confine = [SUPERVISOR.to_owned(), "confine".to_owned(), policy.to_string()];
    [&[][..], &confine[..]].map(|before| {
        let argv: Vec<&str> =
            before.iter().map(String::as_str).chain(["/bin/bash", "-c", command]).collect();
        let ended = Command::new(argv[0]).args(&argv[1..]).current_dir(own).output().unwrap();
        eprintln!("{command}\n  -> {}", String::from_utf8_lossy(&ended.stderr));
        ended.status.success()
    })
}

#[test]
fn without_namespaces_files_outside_keep_their_attributes() {
    if probe().landlock.is_none() {
        eprintln!("NOT CHECKED, this kernel has no Landlock");
        return;
    }
    let (own, dir) = (TempDir::new().unwrap(), outside());
    std::fs::write(own.path().join("mine"), "").unwrap();
    let out = dir.path().display();
    for command in [
        format!("chmod 600 {out}/secret"),
        format!("touch -d 2001-01-01 {out}/secret"),
        format!("touch -h -d 2001-01-01 {out}/secret"),
        format!("chown $(id -u) {out}/secret"),
        format!("truncate -s 0 {out}/cut"),
        format!("perl -e 'exit(utime(1, 1, \"{out}/secret\") != 1)'"),
        format!("perl -e 'exit(!truncate(\"{out}/cut\", 0))'"),
    ] {
        assert_eq!(without_namespaces(own.path(), &command), [true, false], "{command}");
    }
    // Files that a program opened are its own.
    for command in [
        "touch new mine",
        "touch -d 2001-01-01 mine",
        "perl -e 'open(F, \">>mine\"); exit(!chmod(0600, *F))'",
    ] {
        assert_eq!(without_namespaces(own.path(), command), [true, true], "{command}");
    }
}

#[tokio::test]
async fn what_lies_beside_toolchains_is_out_of_reach() {
    let home = std::env::home_dir().unwrap();
    let secret = home.join(format!(".quintet-escape-{}", std::process::id()));
    std::fs::write(&secret, "hush").unwrap();
    check(Stop::Landlock(1), &format!("cat {}", secret.display())).await;
    std::fs::remove_file(secret).unwrap();
    // The folders around programs of the user's own, such as `~/.cargo` for `~/.cargo/bin`.
    let path = std::env::var_os("PATH").unwrap();
    let programs =
        std::env::split_paths(&path).filter(|it| it.starts_with(&home) && it.ends_with("bin"));
    let beside: BTreeSet<_> = programs.filter_map(|it| Some(it.parent()?.to_owned())).collect();
    for folder in beside.iter().filter(|it| it.is_dir()) {
        let secret = folder.join(format!("quintet-escape-{}.json", std::process::id()));
        if let Err(error) = std::fs::write(&secret, "hush") {
            eprintln!("NOT CHECKED, nothing can be put there: {}: {error}", folder.display());
            continue;
        }
        check(Stop::Landlock(1), &format!("cat {}", secret.display())).await;
        std::fs::remove_file(secret).unwrap();
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it starts the sandbox alone")]
fn files_left_open_by_whoever_started_the_daemon_are_closed() {
    let policy = r#"{"mode":"Prefer","network":false,"read":["/"],"write":[],"limits":{"memory":
        8000000000,"file":1,"processes":4096,"open_files":99,"cpu_seconds":9}}"#;
    let script = "exec 9< /etc/passwd; exec \"$0\" confine \"$1\" -- /bin/bash -c 'cat <&9'";
    let left = "exec 9< /etc/passwd; exec /bin/bash -c 'cat <&9'";
    let run = |script: &str| {
        Command::new("/bin/bash").args(["-c", script, SUPERVISOR, policy]).output().unwrap()
    };
    assert!(run(left).status.success());
    let output = run(script);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("9: Bad file descriptor"), "{said}");
}

fn perl(condition: &str) -> String {
    format!("perl -MSocket -e 'exit(({condition}) ? 0 : 1)'")
}

fn dial(make: &str, address: &str) -> String {
    perl(&format!("{make} && connect($s, pack_sockaddr_un({address}))"))
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}
