//! `quintet keys`: stores, lists and removes API keys in the desktop's keyring.

mod typed;

use std::io::Write as _;

use anyhow::{Context, Result, bail};

use crate::cli::{Flags, Keys};
use crate::keyring::{self, KeyringError, Names};
use crate::options::{self, Options, SEARCH};

pub(crate) fn main(verb: Keys) -> Result<()> {
    let environment = options::environment();
    let variable = |name: &str| environment.iter().find(|(n, _)| n == name).map(|(_, value)| value);
    let names = Names::of(variable);
    match verb {
        Keys::Set { more, .. } if !more.is_empty() => bail!(
            "a key is never an argument, because other programs and the shell's history would see it; \
             type it when you are asked, or send it through a pipe"
        ),
        Keys::Set { flags, name, .. } => set(&flags, &name, &names),
        Keys::List => list(&names),
        Keys::Forget { name } => forget(&name, &names),
    }
}

fn set(flags: &Flags, name: &str, names: &Names) -> Result<()> {
    let options = options::read_closed(flags)?;
    check(name, &options)?;
    // Checked first, so that the user is not asked for a key that cannot be stored.
    keyring::reach().map_err(keyring_error)?;
    let key = typed::read(&format!("key for {name}: "))?;
    keyring::set(name, &key).map_err(keyring_error)?;
    names.add(name)?;
    print_line(&format!(
        "the key for {name} is in the keyring; a daemon that runs finds it when it is started again"
    ))?;
    let search = options.search.source.as_ref().filter(|_| name == SEARCH);
    match options.keys.sources.get(name).or(search) {
        Some(source) => {
            print_line(&format!("{name} has another key from {source}, which is used first"))
        }
        None => Ok(()),
    }
}

/// Refuses a mistyped name, which would never be looked up.
fn check(name: &str, options: &Options) -> Result<()> {
    let providers = || options.providers.iter().map(|provider| provider.name.as_str());
    let known = || providers().chain([SEARCH]);
    if known().any(|known| known == name) && !name.contains(char::is_control) {
        return Ok(());
    }
    let nearest = known().min_by_key(|known| strsim::damerau_levenshtein(known, name));
    bail!(
        "there is no provider {name:?}; did you mean {:?}? (those of a configuration file need --config)",
        nearest.unwrap_or_default()
    )
}

/// Prints the names, each with a note if there is a problem.
fn list(names: &Names) -> Result<()> {
    let recorded = names.read()?;
    let kept = keyring::list(&recorded).map_err(keyring_error)?;
    for (name, locked) in &kept {
        match (locked, recorded.contains(name)) {
            (true, _) => print_line(&format!("{name}  (locked)"))?,
            (false, true) => print_line(name)?,
            (false, false) => {
                print_line(&format!("{name}  (not looked for: quintet keys set {name})"))?;
            }
        }
    }
    for name in recorded.iter().filter(|name| !kept.contains_key(*name)) {
        print_line(&format!("{name}  (gone from the keyring: quintet keys set {name})"))?;
    }
    Ok(())
}

/// The name is removed first, so that the daemon stops looking up the key even if the keyring
/// cannot be reached.
fn forget(name: &str, names: &Names) -> Result<()> {
    let recorded = names.remove(name)?;
    match keyring::forget(name) {
        Ok(true) => print_line(&format!("the key for {name} is removed from the keyring")),
        Ok(false) if recorded => print_line(&format!("the keyring no longer had a key for {name}")),
        Ok(false) => {
            bail!("there is no key for {name:?}; `quintet keys list` lists them")
        }
        Err(trouble) if recorded => {
            let left = format!("{name} is no longer looked up, but its key was not removed");
            Err(keyring_error(trouble)).context(left)
        }
        Err(trouble) => Err(keyring_error(trouble)),
    }
}

fn keyring_error(trouble: KeyringError) -> anyhow::Error {
    anyhow::anyhow!("{trouble}; {}", trouble.remedy())
}

fn print_line(line: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{line}")?)
}
