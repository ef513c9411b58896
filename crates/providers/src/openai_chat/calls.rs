//! Finds the call that a piece belongs to. Some servers number their calls, some number all of them
//! 0, some only name them, some do so in every piece.

use super::wire;
use crate::calls::Calls;

/// Adds a piece. Fails with the reason if it cannot belong to a call.
pub(super) fn add(calls: &mut Calls, piece: &wire::Call<'_>) -> Result<(), String> {
    let id = wire::text(&piece.id);
    let function = piece.function.as_ref();
    let name = function.map_or("", |function| wire::text(&function.name));
    let at = match find(calls, piece.index, id, name) {
        Some(at) => at,
        None => calls.begin(piece.index, "", "")?,
    };
    calls.name(at, id, name);
    match function.and_then(|function| function.arguments) {
        Some(arguments) => append(calls, at, arguments.get()),
        None => Ok(()),
    }
}

fn find(calls: &Calls, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
    let Some(index) = index else { return find_unnumbered(calls, id, name) };
    let at = calls.find(index)?;
    let slot = calls.partial_calls().get(at)?;
    let another = !name.is_empty() && differs(id, &slot.call.id);
    (!another).then_some(at)
}

fn find_unnumbered(calls: &Calls, id: &str, name: &str) -> Option<usize> {
    let last = calls.partial_calls().len().checked_sub(1);
    if id.is_empty() {
        return last.filter(|_| name.is_empty());
    }
    let known = calls.partial_calls().iter().rposition(|slot| slot.call.id == id);
    known.or_else(|| last.filter(|_| name.is_empty()))
}

fn differs(id: &str, other: &str) -> bool {
    !id.is_empty() && !other.is_empty() && id != other
}

/// Arguments are a string of JSON; a few servers send the JSON itself.
fn append(calls: &mut Calls, at: usize, piece: &str) -> Result<(), String> {
    if !piece.starts_with('"') {
        return calls.append(at, piece);
    }
    let text: wire::Text<'_> = serde_json::from_str(piece).map_err(|error| error.to_string())?;
    calls.append(at, &text.0)
}
