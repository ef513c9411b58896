//! A writer that is killed at any moment leaves no half of an entry.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use quintet_kernel::memory::{MemoryEntry, MemoryFile};
use quintet_kernel::port::Memory;

use crate::world::{World, settings};

const ROLE: &str = "QUINTET_MEMORY_WRITES_TO";

/// The test is run by itself once more, as the writer, by the name that is in the environment.
#[tokio::test]
async fn a_killed_writer_leaves_no_half_of_an_entry() {
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
        assert!(entries.iter().all(|entry| *entry == long_entry()), "an entry is not whole");
        assert!(entries.len() >= acknowledged, "{} of {acknowledged}", entries.len());
    }
}

fn long_entry() -> String {
    format!("begin {} end", "x".repeat(60_000))
}

#[expect(clippy::print_stdout, reason = "the one who kills it listens")]
async fn write_on(folder: &std::path::Path) {
    let world = World::new();
    let memory = quintet_memory::MarkdownMemory::new(settings(folder), world.clock.clone());
    loop {
        memory.write(folder, MemoryEntry::new(MemoryFile::LongTerm, long_entry())).await.unwrap();
        println!("\nwritten");
    }
}

/// Kills a writer once it says that it has written so often; gives what it said.
fn killed_after(folder: &std::path::Path, times: usize) -> usize {
    #[expect(clippy::disallowed_methods, reason = "it must be another process to be killed")]
    let mut writer = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::a_killed_writer_leaves_no_half_of_an_entry", "--nocapture"])
        .env(ROLE, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(writer.stdout.take().unwrap());
    let (mut heard, mut line) = (0, String::new());
    while heard < times && said.read_line(&mut line).unwrap() > 0 {
        heard += usize::from(std::mem::take(&mut line).trim() == "written");
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    heard + rest.lines().filter(|line| line.trim() == "written").count()
}
