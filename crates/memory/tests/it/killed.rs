//! Tests that a killed writer leaves no partial entry.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use quintet_kernel::memory::{MemoryEntry, MemoryFile};
use quintet_kernel::port::Memory;

use crate::world::{World, settings};

const ROLE: &str = "QUINTET_MEMORY_WRITES_TO";

/// This test starts itself again as the writer, selected by an environment variable.
#[tokio::test]
async fn a_killed_writer_leaves_no_partial_entry() {
    if let Some(folder) = std::env::var_os(ROLE) {
        return write_on(folder.as_ref()).await;
    }
    let world = World::with(|settings| settings.soft_limit_bytes = 0);
    let mut acknowledged = 0;
    for round in 0..12 {
        acknowledged += killed_after(world.folder.path(), round % 4 + 1);
        let memory =
            quintet_memory::MarkdownMemory::new(settings(world.folder.path()), world.clock.clone());
        memory.bootstrap(world.folder.path(), 0).await;
        let text = world.text("memory/MEMORY.md");
        let entries: Vec<&str> = text.split_terminator("\n\n").map(str::trim_end).collect();
        assert!(entries.iter().all(|entry| *entry == long_entry()), "an entry is incomplete");
        assert!(entries.len() >= acknowledged, "{} of {acknowledged}", entries.len());
    }
}

fn long_entry() -> String {
    format!("begin {} end", "x".repeat(60_000))
}

#[expect(clippy::print_stdout, reason = "the parent process reads the output")]
async fn write_on(folder: &std::path::Path) {
    let world = World::new();
    let memory = quintet_memory::MarkdownMemory::new(settings(folder), world.clock.clone());
    loop {
        memory.write(folder, MemoryEntry::new(MemoryFile::LongTerm, long_entry())).await.unwrap();
        println!("\nwritten");
    }
}

/// Kills a writer once it has reported this many entries; returns the reported number.
fn killed_after(folder: &std::path::Path, times: usize) -> usize {
    #[expect(clippy::disallowed_methods, reason = "another process is needed, to kill it")]
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::a_killed_writer_leaves_no_partial_entry", "--nocapture"])
        .env(ROLE, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(writer.stdout.take().unwrap());
    let (mut heard, mut line) = (0, String::new());
    while heard < times && output.read_line(&mut line).unwrap() > 0 {
        heard += usize::from(std::mem::take(&mut line).trim() == "written");
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    heard + rest.lines().filter(|line| line.trim() == "written").count()
}
