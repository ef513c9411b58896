//! Commands by `shell`, in its sandbox and recorded for undo, against the same in a plain shell.
//!
//! Each command runs in a workspace that was recorded before, as in a session that has worked for a
//! while: one-time costs of a workspace have their own row.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use super::Plan;
use super::tools::{timed, tried_with};
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

/// A command and the needs of its workspace.
struct Case {
    name: &'static str,
    /// The required program.
    program: &'static str,
    /// Creates the workspace, once.
    setup: &'static str,
    /// Runs before each measurement, not measured.
    before: &'static str,
    command: &'static str,
}

const FILES: &str = "import os\nfor n in range(COUNT):\n d = f'files/d{n % 500}'\n os.makedirs(d, exist_ok=True)\n open(f'{d}/{n}', 'w').write(f'{n}\\n')";

const COMMIT: &str = "git add -A && git -c user.name=a -c user.email=a@b commit -qm";

const CASES: [Case; 6] = [
    Case { name: "true", program: "true", setup: "true", before: "true", command: "true" },
    Case {
        name: "untar of 10,000 files",
        program: "tar",
        setup: "files 10000 && tar cf ../all.tar files && rm -r files && mv ../all.tar .",
        before: "rm -rf files",
        command: "tar xf all.tar",
    },
    Case {
        name: "git checkout over 5,000 files",
        program: "git",
        setup: "git init -q -b one . && files 5000 && commit one && git switch -qc two && \
                find files -type f -exec sh -c 'for f; do echo x >> $f; done' _ {} + && commit two",
        before: "git checkout -q two",
        command: "git checkout -q one",
    },
    Case {
        name: "rm -rf of 30,000 files in git",
        program: "git",
        setup: "git init -q -b one . && files 30000 && commit one",
        before: "git checkout -q . && git status > /dev/null",
        command: "rm -rf files",
    },
    Case {
        name: "npm install of 300 packages",
        program: "npm",
        setup: "packages 300 && echo node_modules > .gitignore",
        before: "rm -rf node_modules",
        command: "npm ci --offline --no-audit --no-fund --silent",
    },
    Case {
        name: "cargo build",
        program: "cargo",
        setup: "cargo init -q --vcs git --lib --name app . && python3 -c 'open(\"src/lib.rs\", \"w\")\
                .write(\"\".join(f\"#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\\npub struct S{n}(pub String, pub Vec<u8>);\\n\" for n in range(1500)))' && commit one",
        before: "rm -rf target",
        command: "cargo build --offline -q",
    },
];

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in &CASES {
        rows.push(measured(rig, plan, case).await?);
    }
    rows.extend(unchanged(rig, plan).await?);
    Ok(rows)
}

async fn measured(rig: &Rig, plan: &Plan, case: &Case) -> Result<Row> {
    let row = Row::new(format!("{}, by shell, ms", case.name)).aim("<= 1.2x + 30 ms");
    if timed(Path::new("/"), "sh", &["-c", &format!("command -v {}", case.program)]).await.is_none()
    {
        return Ok(row.note(format!("there is no {}", case.program)));
    }
    let workspace = TempDir::new_in(rig.workspace())?;
    prepare(workspace.path(), case.setup).await?;
    let data = TempDir::new()?;
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds(7, 3) {
        prepare(workspace.path(), case.before).await?;
        plain.extend(timed(workspace.path(), "bash", &["-c", case.command]).await);
        prepare(workspace.path(), case.before).await?;
        shell(rig, workspace.path(), data.path(), "true", 1).await?;
        ours.extend(shell(rig, workspace.path(), data.path(), case.command, 1).await?);
    }
    ensure!(!plain.is_empty(), "{} does not work in a plain shell", case.name);
    Ok(row.proxy(median(&plain)).quintet(median(&ours)).note("against a plain shell"))
}

/// The cost of a snapshot without changes, and of the first one.
async fn unchanged(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let files = plan.rounds(50_000, 5_000);
    let workspace = TempDir::new_in(rig.workspace())?;
    prepare(workspace.path(), &format!("git init -q -b one . && files {files} && commit one"))
        .await?;
    let empty = TempDir::new_in(rig.workspace())?;
    let (mut first, mut again, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    let (mut none, mut warm_none) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds(3, 1) {
        let data = TempDir::new()?;
        first.extend(shell(rig, workspace.path(), data.path(), "true", 1).await?);
        for _ in 0..5 {
            again.extend(shell(rig, workspace.path(), data.path(), "true", 1).await?);
            none.extend(shell(rig, empty.path(), data.path(), "true", 1).await?);
        }
        warm.extend(&shell(rig, workspace.path(), data.path(), "true", 6).await?[1..]);
        warm_none.extend(&shell(rig, empty.path(), data.path(), "true", 6).await?[1..]);
    }
    let name = |what: &str| format!("`true` by shell in a repository of {files} files, {what}, ms");
    let note = "two snapshots; against `true` in an empty folder";
    let row = |what: &str, ours: &[f64], none: &[f64]| {
        Row::new(name(what)).proxy(median(none)).quintet(median(ours)).note(note)
    };
    Ok(vec![
        row("again in one process", &warm, &warm_none).aim("<= 1.2x + 30 ms"),
        row("in a new process", &again, &none),
        row("the first time", &first, &none),
    ])
}

/// The duration of a command with the tool, several times in one process.
async fn shell(
    rig: &Rig,
    workspace: &Path,
    data: &Path,
    command: &str,
    times: u32,
) -> Result<Vec<f64>> {
    let data = format!("data_dir={}", data.display());
    let input = json!({ "command": command });
    tried_with(rig, workspace, ("shell", &input), times, &["--set", &data]).await
}

/// Prepares a workspace, with shell functions that several cases need.
async fn prepare(workspace: &Path, script: &str) -> Result<()> {
    let words = format!(
        "files() {{ python3 -c \"${{FILES/COUNT/$1}}\"; }}\n\
         commit() {{ {COMMIT} \"$1\"; }}\n\
         packages() {{ python3 -c \"${{PACKAGES/COUNT/$1}}\" && npm install --offline --no-audit --no-fund --silent; }}\n\
         {script}"
    );
    let output = Command::new("bash")
        .args(["-c", &words])
        .env("FILES", FILES)
        .env("PACKAGES", PACKAGES)
        .current_dir(workspace)
        .output()
        .await?;
    let trouble = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{script}: {trouble}");
    Ok(())
}

/// Packages next to the workspace, so that nothing is downloaded.
const PACKAGES: &str = r#"
import io, json, os, tarfile
os.makedirs("packed", exist_ok=True)
dependencies = {}
for n in range(COUNT):
    name = f"p{n}"
    with tarfile.open(f"packed/{name}.tgz", "w:gz") as tar:
        files = {"package.json": json.dumps({"name": name, "version": "1.0.0"})}
        files |= {f"lib/{i}.js": f"module.exports = {i}" for i in range(20)}
        for path, text in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    dependencies[name] = f"file:packed/{name}.tgz"
json.dump({"name": "app", "version": "1.0.0", "dependencies": dependencies}, open("package.json", "w"))
"#;
