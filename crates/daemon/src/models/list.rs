//! `quintet models`: lists the models, one per line.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{ModelInfo, ModelLocation, Price};
use quintet_kernel::port::Models as _;
use quintet_senses::weights::{self, Weights};
use quintet_weights::is_present;

use crate::assemble::models;
use crate::cli::Flags;
use crate::options;

/// Prints one line per model: usable ones and, with `all`, the others.
pub(super) fn list(flags: &Flags, all: bool) -> Result<()> {
    let options = options::read(flags)?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listed = threads.block_on(async { models(&options).0.list().await });
    let mut stdout = std::io::stdout().lock();
    let hidden = listed.iter().filter(|listed| !listed.usable).count();
    for listed in listed.iter().filter(|listed| all || listed.usable) {
        writeln!(stdout, "{}", line(listed))?;
    }
    for row in weights::all() {
        writeln!(stdout, "{}", sense(row, &options.senses.settings.models_dir))?;
    }
    if hidden > 0 && !all {
        writeln!(
            stdout,
            "{hidden} more have no key, do not answer or were not fetched: quintet models --all"
        )?;
    }
    Ok(())
}

/// The weights of a sense, with their state.
fn sense(row: &Weights, dir: &Path) -> String {
    let state = if is_present(row.model(), dir) { "local" } else { "absent" };
    let (title, licence) = (&row.title, &row.licence);
    let size = row.model().size().div_ceil(1_000_000);
    format!("{:<48} {state:<7} {title} ({licence}), {size} MB", row.name)
}

fn line(listed: &ModelInfo) -> String {
    let about = &listed.about;
    let side = match about.side {
        ModelLocation::Local => "local",
        ModelLocation::Online => "online",
    };
    let usable = match (listed.usable, about.side) {
        (true, _) => side,
        (false, ModelLocation::Local) => "absent",
        (false, ModelLocation::Online) => "no key",
    };
    let mut line = format!("{:<48} {usable:<7}", listed.model.to_string());
    let window = listed.profile.context_window.map_or("?".into(), short);
    let _ = write!(line, " {window:>6} tokens");
    let _ = write!(line, "  {:<24}", abilities(listed).join(" "));
    if let Some(Price { input, output, .. }) = about.price {
        let _ = write!(line, " ${} in, ${} out", dollars(input), dollars(output));
    }
    line.trim_end().into()
}

fn abilities(listed: &ModelInfo) -> Vec<&'static str> {
    let words = [
        (listed.profile.tools, "tools"),
        (listed.profile.inputs.contains(&MediaKind::Image), "images"),
        (listed.about.thinking, "thinks"),
    ];
    words.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect()
}

fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}M", tokens / 1_000_000),
    }
}

/// A price in millionths of a dollar, with as many digits as needed.
fn dollars(micro: u64) -> String {
    let (whole, rest) = (micro / 1_000_000, micro % 1_000_000);
    let rest = format!("{rest:06}");
    match rest.trim_end_matches('0') {
        "" => whole.to_string(),
        rest => format!("{whole}.{rest:0<2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{dollars, short};

    #[test]
    fn numbers_are_shortened() {
        assert_eq!([dollars(3_000_000), dollars(250_000), dollars(5_000)], ["3", "0.25", "0.005"]);
        assert_eq!([short(900), short(131_072), short(1_048_576)], ["900", "131k", "1M"]);
    }
}
