//! Measures a local model: tokens per second, read and written, and memory.
//!
//! `cargo run --release -p quintet-local --example model_speed -- MODELS_DIR MODEL THREADS READ WRITE`

use std::error::Error;
use std::io::Write as _;
use std::time::{Duration, Instant};

use quintet_kernel::model::{
    Chunk, ModelRef, Prompt, PromptMessage, PromptPart, Sampling, Usage, WebSearch,
};
use quintet_kernel::port::Models as _;
use quintet_local::{Local, Settings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, model, threads, read, write] = args.as_slice() else {
        return Err("usage: speed MODELS_DIR MODEL THREADS READ WRITE".into());
    };
    let idle = Duration::from_secs(600);
    let threads = Some(threads.parse()?);
    let local = Local::new(Settings { models_dir: dir.into(), window: 8192, idle, threads });
    let loading = timed(&local, ask(model, "hi", 1)).await?.0;
    let text = "The ship sailed on. ".repeat(read.parse::<usize>()? / 5);
    let (first, usage) = timed(&local, ask(model, &text, 1)).await?;
    // Only the last token of a repeated prompt is evaluated again, so the rest of the time is
    // generation.
    let (second, written) = timed(&local, ask(model, &text, write.parse()?)).await?;
    let per_second = |tokens: u64, time: Duration| tokens as f64 / time.as_secs_f64();
    let mut out = std::io::stdout().lock();
    writeln!(out, "load    {:8.2} s", loading.as_secs_f64())?;
    writeln!(out, "read    {:8.2} tokens/s", per_second(usage.input - usage.cached, first))?;
    writeln!(
        out,
        "write   {:8.2} tokens/s ({} tokens)",
        per_second(written.output, second),
        written.output
    )?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    for line in status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("Rss")) {
        writeln!(out, "{line}")?;
    }
    local.close();
    Ok(())
}

fn ask(model: &str, text: &str, max_tokens: u64) -> Prompt {
    Prompt {
        model: ModelRef { provider: "local".into(), model: model.into() },
        system: "Tell a story without an end.".into(),
        messages: vec![PromptMessage::User(vec![PromptPart::Text(text.into())]).into()],
        tools: Vec::new(),
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling {
            max_tokens: Some(max_tokens),
            temperature: Some(0.7),
            ..Sampling::default()
        },
        account: None,
    }
}

async fn timed(local: &Local, prompt: Prompt) -> Result<(Duration, Usage), Box<dyn Error>> {
    #[expect(clippy::disallowed_methods, reason = "this program measures time")]
    let start = Instant::now();
    let mut stream = local.stream(prompt);
    loop {
        for chunk in stream.next().await.map_err(|failure| failure.message)? {
            if let Chunk::Finished(answer) = chunk {
                return Ok((start.elapsed(), answer.usage));
            }
        }
    }
}
