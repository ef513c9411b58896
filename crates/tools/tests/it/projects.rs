//! Ordinary projects work in the sandbox: their tests, package managers, servers and browsers.

use quintet_tools::sandbox::{probe, report};
use serde_json::json;

use crate::bench::{Bench, SUPERVISOR, json};

const C: &str = "#include <stdio.h>\nint main(void){puts(\"c\");}\n";

/// Runs commands one after the other in a workspace with these files; all must succeed. Says so where
/// a program is missing or the kernel has no namespaces.
async fn check(program: &str, files: &[(&str, &str)], commands: &[&str]) {
    if !report(SUPERVISOR.as_ref()).namespaces {
        eprintln!("NOT CHECKED, there are no namespaces here");
        return;
    }
    let (bench, home) = (Bench::new(), std::env::home_dir().unwrap());
    bench.files(files);
    let is_here = format!("command -v {program}");
    for (n, command) in [is_here.as_str()].iter().chain(commands).enumerate() {
        // Tests themselves have no home.
        let command = format!("export HOME={}; {command}", home.display());
        let report = json(&bench.run("shell", json!({ "command": command })).await);
        if n == 0 && report["exit_code"] != 0 {
            eprintln!("NOT CHECKED, there is no {program} here");
            return;
        }
        assert_eq!(report["exit_code"], 0, "{command}: {report}");
    }
}

#[tokio::test]
async fn a_python_project_with_a_live_server() {
    let server = "import http.server\n\
        class Hello(http.server.BaseHTTPRequestHandler):\n\
        \x20   def do_GET(self):\n\
        \x20       self.send_response(200); self.end_headers(); self.wfile.write(b'hello')\n";
    let test = "import http.server, threading, unittest, urllib.request, sqlite3\n\
        from app import Hello\n\
        class Live(unittest.TestCase):\n\
        \x20   def test_it(self):\n\
        \x20       server = http.server.ThreadingHTTPServer(('localhost', 0), Hello)\n\
        \x20       threading.Thread(target=server.serve_forever, daemon=True).start()\n\
        \x20       url = f'http://localhost:{server.server_port}/'\n\
        \x20       self.assertEqual(urllib.request.urlopen(url).read(), b'hello')\n\
        \x20       sqlite3.connect('app.db').execute('create table if not exists t (x)')\n";
    let files = [("app.py", server), ("test_app.py", test)];
    let environment = "python3 -m venv --without-pip env && env/bin/python -m unittest";
    check("python3", &files, &["python3 -m unittest", environment]).await;
}

#[tokio::test]
async fn a_node_project_with_packages_and_a_server() {
    let package = r#"{ "name": "app", "version": "1.0.0", "scripts": { "test": "node --test" } }"#;
    let library = r#"{ "name": "lib", "version": "1.0.0", "main": "index.js", "scripts": { "install": "node -e 0" } }"#;
    let test = "const test = require('node:test'), http = require('node:http'), lib = require('lib');\n\
        test('serves', async () => {\n\
        \x20 const server = http.createServer((_, answer) => answer.end(lib())).listen(0);\n\
        \x20 const text = await (await fetch(`http://localhost:${server.address().port}/`)).text();\n\
        \x20 server.close();\n\
        \x20 if (text !== 'hello') throw new Error(text);\n\
        });\n";
    let files = [
        ("package.json", package),
        ("app.test.js", test),
        ("lib/package.json", library),
        ("lib/index.js", "module.exports = () => 'hello';\n"),
    ];
    let install =
        "npm pack --silent ./lib && npm install --offline --no-audit --no-fund ./lib-1.0.0.tgz";
    // The second time it comes from npm's cache.
    let again = "rm -r node_modules && npm ci --offline --no-audit --no-fund";
    check("npm", &files, &[install, "npm test", again, "npm test"]).await;
}

#[tokio::test]
async fn a_crate_with_a_build_script_and_tests() {
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let build = "fn main() {\n\
        \x20   let out = std::env::var(\"OUT_DIR\").unwrap();\n\
        \x20   std::fs::write(format!(\"{out}/made.rs\"), \"pub const MADE: u8 = 7;\").unwrap();\n}\n";
    let library = "include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\n\
        #[test]\nfn listens() {\n\
        \x20   let server = std::net::TcpListener::bind(\"127.0.0.1:0\").unwrap();\n\
        \x20   std::net::TcpStream::connect(server.local_addr().unwrap()).unwrap();\n\
        \x20   assert_eq!(MADE, 7);\n}\n";
    let files = [("Cargo.toml", manifest), ("build.rs", build), ("src/lib.rs", library)];
    check("cargo", &files, &["cargo test --offline -q", "cargo build --offline -q"]).await;
}

#[tokio::test]
async fn a_crate_with_a_dependency_that_was_fetched_before() {
    // The versions are those that this project itself needs.
    let manifest = "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
        [dependencies]\nhex = \"0.4.3\"\n[dev-dependencies]\ntempfile = \"3\"\n";
    let library = "pub fn shown(bytes: &[u8]) -> String { hex::encode(bytes) }\n\
        #[test]\nfn writes() {\n\
        \x20   let dir = tempfile::tempdir().unwrap();\n\
        \x20   std::fs::write(dir.path().join(\"x\"), shown(&[255])).unwrap();\n\
        \x20   assert_eq!(std::fs::read(dir.path().join(\"x\")).unwrap(), b\"ff\");\n}\n";
    let files = [("Cargo.toml", manifest), ("src/lib.rs", library)];
    check("cargo", &files, &["cargo build --offline -q", "cargo test --offline -q"]).await;
}

#[tokio::test]
async fn without_namespaces_programs_are_built_too() {
    if probe().landlock.is_none() {
        eprintln!("NOT CHECKED, this kernel has no Landlock");
        return;
    }
    let (bench, home) = (Bench::without_namespaces(), std::env::home_dir().unwrap());
    bench.files(&[("c.c", C), ("script", "#!/bin/sh\necho s\n")]);
    let run = async |command: &str, permissions: serde_json::Value| {
        let command = format!("export HOME={}; {command}", home.display());
        let input = json!({ "command": command, "permissions": permissions });
        json(&bench.run("shell", input).await)
    };
    // It is really there, and what it costs is known.
    let socket = "perl -MSocket -e 'exit !socket($s, AF_INET, SOCK_STREAM, 0)'";
    assert_ne!(run(socket, json!({})).await["exit_code"], 0);
    // Elsewhere it may be `ld` that links.
    #[cfg(target_arch = "x86_64")]
    let crated = "cargo new -q --vcs none app && cd app && cargo run -q --offline";
    #[cfg(target_arch = "x86_64")]
    assert_eq!(run(crated, json!({})).await["stdout"], "Hello, world!\n");
    // What a program opened it may make executable.
    let packed = "tar cf a.tar --mode=700 script && mkdir out && tar xf a.tar -C out && out/script";
    assert_eq!(run(packed, json!({})).await["exit_code"], 0);
    // Others mark what they make by its name, which takes a person to agree.
    for command in [
        "cc -o c c.c && ./c",
        "chmod +x script && ./script",
        "install -m 755 script made && ./made",
        "python3 -c 'import os; os.chmod(\"script\", 0o700)'",
        "printf 'all:\\n\\tcc -o c c.c\\n\\t./c\\n' > Makefile; make",
        "git init -q repository && cd repository && git config user.name x",
    ] {
        let report = run(command, json!({})).await;
        assert_ne!(report["exit_code"], 0, "{command}: {report}");
        assert_eq!(report["permissions"], json!({ "attributes": true }), "{command}: {report}");
        let report =
            run(&format!("rm -rf c made repository; {command}"), report["permissions"].clone())
                .await;
        assert_eq!(report["exit_code"], 0, "{command}: {report}");
    }
}

#[tokio::test]
async fn git_in_its_daily_forms() {
    let identity = "git config user.name a && git config user.email a@b";
    let commands = [
        format!("git init -q -b main . && {identity} && echo 1 > a && git add a && git commit -qm one"),
        "git switch -qc side && echo 2 > b && git add b && git commit -qm two".to_owned(),
        "git switch -q main && echo 3 > c && git add c && git commit -qm three".to_owned(),
        "git merge -q --no-edit side && git log --oneline | wc -l | grep -q 4".to_owned(),
        "git switch -qc other HEAD~1 && echo 4 > d && git add d && git commit -qm four".to_owned(),
        "git rebase -q main && git cherry-pick --allow-empty --no-edit side~0 || git cherry-pick --skip".to_owned(),
        "echo x >> a && git stash -q && git stash pop -q && git diff --stat && git checkout -q a".to_owned(),
        "git worktree add -q tree main && git -C tree status && git worktree remove tree".to_owned(),
        format!("git clone -q . copy && cd copy && {identity} && echo 5 > e && git add e && git commit -qm five && git push -q origin HEAD:back"),
        "git bisect start HEAD HEAD~1 && git bisect reset && git tag v1 && git describe --tags".to_owned(),
        "git gc -q && git fsck && git blame a && git rev-parse back".to_owned(),
    ];
    check("git", &[], &commands.each_ref().map(String::as_str)).await;
}

#[tokio::test]
async fn a_page_in_a_headless_browser() {
    let page = "<title>t</title><p id=x></p><script>x.textContent = 6 * 7</script>";
    let flags = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
                 --disable-component-update --disable-sync --user-data-dir=$TMPDIR/profile";
    let served = format!(
        "python3 -m http.server --bind 127.0.0.1 8000 2> /dev/null & server=$!; \
         until (exec 3<>/dev/tcp/127.0.0.1/8000) 2> /dev/null; do kill -0 $server || exit 1; done; \
         chromium {flags} --dump-dom http://127.0.0.1:8000/page.html 2> log | grep -q '>42<' \
         || (tail -5 log; exit 1)"
    );
    check("chromium", &[("page.html", page)], &[&served]).await;
}

#[tokio::test]
async fn memory_that_is_only_reserved_counts_little() {
    // An installation of 300 packages by npm reserves about as much.
    let reserve = "python3 -c 'print(len([bytearray(1 << 24) for _ in range(640)]))'";
    check("python3", &[], &[reserve]).await;
}
