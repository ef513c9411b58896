//! Measures senses: CPU seconds and memory of embeddings and OCR.
//!
//! `cargo run --release -p quintet-senses --example senses_speed -- MODELS_DIR THREADS PICTURE...`

use std::error::Error;
use std::io::Write as _;
use std::time::Duration;

use quintet_kernel::port::{Embedder as _, Ocr as _};
use quintet_senses::{LocalEmbedder, LocalOcr, Settings};

const SENTENCE: &str = "open the settings, turn on dark mode and restart the terminal";
const ROUNDS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    quintet_allocator::bound_free_memory();
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(measure())
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, threads, pictures @ ..] = args.as_slice() else {
        return Err("usage: speed MODELS_DIR THREADS PICTURE...".into());
    };
    let idle = Duration::from_secs(1);
    let settings = Settings { models_dir: dir.into(), idle, threads: threads.parse()? };
    let mut out = std::io::stdout();
    writeln!(out, "start: {} MB", memory()?)?;

    let embedder = LocalEmbedder::new(settings.clone());
    let before = cpu()?;
    embedder.embed(vec![SENTENCE.into()]).await?;
    writeln!(
        out,
        "embeddings: load and first text {:.3} CPU s, {} MB",
        cpu()? - before,
        memory()?
    )?;
    for batch in [1, 32] {
        let before = cpu()?;
        for _ in 0..ROUNDS {
            embedder.embed(vec![SENTENCE.into(); batch]).await?;
        }
        let each = (cpu()? - before) * 1e3 / f64::from(ROUNDS) / batch as f64;
        writeln!(out, "embeddings: batch of {batch}: {each:.2} CPU ms per text, {} MB", memory()?)?;
    }
    while embedder.is_loaded() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    writeln!(out, "embeddings: unloaded, {} MB", memory()?)?;

    let ocr = LocalOcr::new(settings);
    for picture in pictures {
        let image = std::fs::read(picture)?;
        let before = cpu()?;
        let text = ocr.read(image).await?;
        let spent = cpu()? - before;
        writeln!(
            out,
            "ocr: {picture}: {} lines, {spent:.2} CPU s, {} MB",
            text.lines.len(),
            memory()?
        )?;
    }
    while ocr.is_loaded() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    writeln!(out, "ocr: unloaded, {} MB", memory()?)?;
    Ok(())
}

/// CPU seconds of this process so far.
fn cpu() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let ticks = fields[12].parse::<f64>()? + fields[13].parse::<f64>()?;
    Ok(ticks / 100.0)
}

/// Resident memory in MB.
fn memory() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or("0");
    Ok(kilobytes.parse::<u64>()? / 1000)
}
