//! Embeddings and OCR on the command line, in CPU time of the whole program including loading.
//!
//! The weights are the user's (`quintet models pull senses`). OCR is compared with the Python
//! package `rapidocr` if `python3` has it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use super::Plan;
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

const SENTENCE: &str = "open the settings, turn on dark mode and restart the terminal";
const BATCH: usize = 32;
/// A window of 1000 x 640 pixels with 32 lines, and a table of 189 cells.
const PICTURES: [(&str, &str); 2] =
    [("a window of 32 lines", "light.png"), ("a table of 189 cells", "table.png")];
const RAPIDOCR: &str = "import sys, logging; logging.disable(50); from rapidocr import RapidOCR; \
     one = {'EngineConfig.onnxruntime.intra_op_num_threads': 1}; RapidOCR(params=one)(sys.argv[1])";

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let program = rig.quintet();
    let embed = |texts: usize| {
        let mut command = Command::new(program);
        command.args(["embed", "--set=senses.threads=1"]).args(vec![SENTENCE; texts]);
        command
    };
    let rounds = plan.rounds(5, 2);
    let one = cpu_ms(rounds, || embed(1)).await.context("quintet models pull embeddings")?;
    let many = cpu_ms(rounds, || embed(1 + BATCH)).await?;
    let mut rows = vec![
        Row::new("embedding of one text with loading, CPU ms").quintet(one),
        Row::new("embedding, each of 32 texts more, CPU ms").quintet((many - one) / BATCH as f64),
    ];
    for (what, file) in PICTURES {
        let picture = screens().join(file);
        let ocr = || {
            let mut command = Command::new(program);
            command.args(["ocr", "--set=senses.threads=1"]).arg(&picture);
            command
        };
        let python = || {
            let mut command = Command::new("python3");
            command.args(["-c", RAPIDOCR]).arg(&picture);
            command
        };
        let quintet = cpu_ms(rounds, ocr).await.context("quintet models pull ocr")?;
        let row = Row::new(format!("OCR of {what} with loading, CPU ms")).quintet(quintet);
        rows.push(match cpu_ms(rounds, python).await {
            Ok(python) => row.against(python).note("against rapidocr in Python"),
            Err(_) => row.note("python3 has no rapidocr to compare with"),
        });
    }
    Ok(rows)
}

/// The median CPU time of a program.
async fn cpu_ms(rounds: usize, command: impl Fn() -> Command) -> Result<f64> {
    let mut samples = Vec::new();
    for _ in 0..rounds {
        let before = children_ms()?;
        let mut command = command();
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().await?;
        ensure!(status.success(), "it ended with {status}");
        samples.push(children_ms()? - before);
    }
    Ok(median(&samples))
}

/// CPU time of all ended child processes.
fn children_ms() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() * 10.0)
}

fn screens() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/senses/tests/it/screens")
}
