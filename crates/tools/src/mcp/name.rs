//! The names under which models call tools of MCP servers.
//!
//! `server__tool` of letters, digits, `_` and `-`, at most 64 characters, as every provider takes it.
//! A name depends on what is named and, where two would be the same, on nothing but what these are:
//! never on the order in which servers answered.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};

/// The longest name that every provider takes.
const NAME_LIMIT: usize = 64;
/// How many characters of a hash keep two names apart.
const HASH_LENGTH: usize = 8;

/// What a name is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'a> {
    /// The server's name in the configuration.
    pub(super) server: &'a str,
    /// Tells servers of the same name apart.
    pub(super) digest: &'a str,
    /// The tool's own name.
    pub(super) tool: &'a str,
}

/// A name for each, all different, in the same order.
pub(super) fn names(all: &[Named<'_>]) -> Vec<String> {
    let plain: Vec<String> = all.iter().map(|named| plain(*named)).collect();
    let mut groups: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, name) in plain.iter().enumerate() {
        groups.entry(name).or_default().push(n);
    }
    let mut names = plain.clone();
    for group in groups.into_values().filter(|group| group.len() > 1) {
        let as_it_is = |n: &usize| plain[*n] == format!("{}__{}", all[*n].server, all[*n].tool);
        // One that needed no change keeps its name, if it is the only one.
        let kept: Vec<usize> = group.iter().copied().filter(as_it_is).collect();
        for n in group {
            if kept != [n] {
                names[n] = shortened(&plain[n], all[n]);
            }
        }
    }
    names
}

fn plain(named: Named<'_>) -> String {
    let name = format!("{}__{}", safe(named.server), safe(named.tool));
    if name.len() <= NAME_LIMIT { name } else { shortened(&name, named) }
}

/// Cuts out the middle, where it is too long, and adds a hash of all that is named.
fn shortened(name: &str, Named { server, digest, tool }: Named<'_>) -> String {
    let mut hash = Sha256::new();
    for part in [server, digest, tool] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash = &hex::encode(hash.finalize())[..HASH_LENGTH];
    let room = NAME_LIMIT - HASH_LENGTH - 1;
    if name.len() <= room {
        return format!("{name}_{hash}");
    }
    // Only ASCII is left in a name.
    let (head, tail) = (room / 2, room - room / 2 - 1);
    format!("{}_{}_{hash}", &name[..head], &name[name.len() - tail..])
}

fn safe(text: &str) -> String {
    let letter = |letter: char| {
        let plain = letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        if plain { letter } else { '_' }
    };
    text.chars().map(letter).collect()
}

#[cfg(test)]
mod tests;
