//! What command lines open.

use std::fs;

use super::*;

/// Checks what the arguments of a server open, in a home with these files and with the daemon's data in `data`.
#[track_caller]
fn check(files: &[&str], arguments: &[&str], expected: Result<&[&str], &str>) {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap().join("home/me");
    for file in files.iter().chain(&["data/quintet.db"]) {
        let file = home.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    let whole = |word: &&str| word.replace("~", home.to_str().unwrap());
    let arguments: Vec<String> = arguments.iter().map(whole).collect();
    let (closed, workspace) = ([home.join("data")], home.join("space"));
    let planner = AccessPlanner { home: Some(&home), workspace: Some(&workspace), closed: &closed };
    let opened = planner.permissions(&arguments, &ServerSandbox::default());
    let opened = opened.map(|opened| opened.words().join("; "));
    let expected = expected.map(|words| words.iter().map(whole).collect::<Vec<_>>().join("; "));
    assert_eq!(opened, expected.map_err(|why| whole(&why)));
}

#[test]
fn a_folder_in_the_arguments_can_be_written() {
    check(&["notes/x"], &["-y", "server", "~/notes"], Ok(&["use the network", "write ~/notes"]));
    check(&["notes/x"], &["--root=~/notes"], Ok(&["use the network", "write ~/notes"]));
    check(&[], &["/usr", "/", "/dev", "~/missing", "relative"], Ok(&["use the network"]));
}

#[test]
fn a_file_in_the_arguments_can_be_read_with_its_project() {
    let files = ["p/package.json", "p/dist/index.js", "tools/server.py", "one.py", ".ssh/id"];
    check(&files, &["~/p/dist/index.js"], Ok(&["use the network", "read ~/p"]));
    check(&files, &["~/tools/server.py"], Ok(&["use the network", "read ~/tools"]));
    check(&files, &["~/one.py"], Ok(&["use the network", "read ~/one.py"]));
    check(&["package.json", "one.py"], &["~/one.py"], Ok(&["use the network", "read ~/one.py"]));
}

#[test]
fn what_lies_in_an_open_folder_is_not_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for folder in ["space", "notes", ".ssh"] {
        fs::create_dir(home.join(folder)).unwrap();
    }
    fs::write(home.join(".ssh/id"), "").unwrap();
    for (link, target) in [("space/a", ".ssh"), ("space/b", ".ssh/id"), ("notes/c", ".ssh/id")] {
        std::os::unix::fs::symlink(home.join(target), home.join(link)).unwrap();
    }
    let workspace = home.join("space");
    let planner = AccessPlanner { home: Some(&home), workspace: Some(&workspace), closed: &[] };
    let words = ["space/a", "space/b", "notes/c", "notes", "notes/"];
    let words: Vec<String> =
        words.iter().map(|word| format!("{}/{word}", home.display())).collect();
    let opened = planner.permissions(&words, &ServerSandbox::default()).unwrap();
    assert_eq!((opened.read, opened.write), (Vec::new(), vec![home.join("notes")]));
}

#[test]
fn the_daemon_s_data_stays_closed() {
    let why = "~ holds the daemon's own data, which stays closed";
    check(&[], &["~"], Err(why));
    let why = "~/data/quintet.db holds the daemon's own data, which stays closed";
    check(&[], &["~/data/quintet.db"], Err(why));
}

#[test]
fn a_program_can_be_read_with_its_toolchain() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for file in ["p/.venv/bin/python", "p/.venv/pyvenv.cfg", "p/.env", "tool", "links/x"] {
        let file = home.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    std::os::unix::fs::symlink(home.join("p/.venv/bin/python"), home.join("links/py")).unwrap();
    let planner = AccessPlanner { home: Some(&home), workspace: None, closed: &[] };
    let readable = |program: &str, path: &str| -> Vec<String> {
        let program = program.replace('~', home.to_str().unwrap());
        let found = planner.program(&program, &[home.join(path)]);
        let short = |path: PathBuf| path.strip_prefix(&home).unwrap().display().to_string();
        found.into_iter().map(short).collect()
    };
    let venv = ["p/.venv/bin", "p/.venv/bin", "p/.venv/pyvenv.cfg"];
    assert_eq!(readable("~/p/.venv/bin/python", ""), venv);
    assert_eq!(readable("py", "links"), ["links", "p/.venv/bin", "p/.venv/pyvenv.cfg"]);
    assert_eq!(readable("~/tool", ""), ["tool"]);
    assert_eq!(readable("tool", ""), [""; 0]);
    assert_eq!(readable("./tool", ""), [""; 0]);
}

#[test]
fn the_sandbox_of_a_server_is_described() {
    let words = |own: ServerSandbox, mode| {
        let command = ["x", "/no/such/path"].map(str::to_owned).to_vec();
        let transport = ToolTransport::Stdio { command, env: Default::default(), sandbox: own };
        let server = ToolServer { name: "x".into(), transport, timeout: Default::default() };
        sandbox_words(&server, None, &Sandbox { mode, ..Sandbox::default() }).unwrap()
    };
    let own = ServerSandbox::default();
    assert_eq!(words(own.clone(), Mode::Require).unwrap(), "sandbox: network");
    assert_eq!(words(own.clone(), Mode::Off).unwrap(), "no sandbox");
    let read = vec![PathBuf::from("/usr/share")];
    let less = ServerSandbox { network: false, read, ..own.clone() };
    assert_eq!(words(less, Mode::Prefer).unwrap(), "sandbox: no network, reads /usr/share");
    assert_eq!(
        words(ServerSandbox { enabled: false, ..own.clone() }, Mode::Require).unwrap(),
        "no sandbox"
    );
    let missing = ServerSandbox { write: vec!["/no/such".into()], ..own };
    assert!(words(missing, Mode::Require).unwrap_err().starts_with("/no/such: No such file"));
}
