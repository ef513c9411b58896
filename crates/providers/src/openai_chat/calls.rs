//! Puts tool calls together from their pieces.

use quintet_kernel::model::AskedCall;

use super::wire;

/// More than this is no answer but an accident.
const MOST_CALLS: usize = 1024;
/// The longest that all arguments of an answer may be.
const LONGEST_ARGUMENTS: usize = 16 << 20;

/// The calls of an answer so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    bytes: usize,
}

#[derive(Debug)]
struct Slot {
    index: Option<u64>,
    call: AskedCall,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn finish(&mut self) -> Vec<AskedCall> {
        std::mem::take(&mut self.slots).into_iter().map(|slot| slot.call).collect()
    }

    /// Adds a piece, or says what is wrong with it.
    pub(super) fn add(&mut self, piece: &wire::Call<'_>) -> Result<(), String> {
        let id = wire::text(&piece.id);
        let function = piece.function.as_ref();
        let name = function.map_or("", |function| wire::text(&function.name));
        let at = match self.find(piece.index, id, name) {
            Some(at) => at,
            None => self.begin(piece.index)?,
        };
        let Some(slot) = self.slots.get_mut(at) else { return Ok(()) };
        if slot.call.id.is_empty() {
            slot.call.id.push_str(id);
        }
        if slot.call.tool.is_empty() {
            slot.call.tool.push_str(name);
        }
        let before = slot.call.arguments.len();
        if let Some(arguments) = function.and_then(|f| f.arguments) {
            append(&mut slot.call.arguments, arguments.get())?;
        }
        self.bytes += slot.call.arguments.len() - before;
        if self.bytes > LONGEST_ARGUMENTS { Err("too long a tool call".into()) } else { Ok(()) }
    }

    fn begin(&mut self, index: Option<u64>) -> Result<usize, String> {
        if self.slots.len() == MOST_CALLS {
            return Err("too many tool calls".into());
        }
        let call = AskedCall { id: String::new(), tool: String::new(), arguments: String::new() };
        self.slots.push(Slot { index, call });
        Ok(self.slots.len() - 1)
    }

    /// The call that a piece belongs to. Some servers number their calls, some number all of them
    /// 0, some only name them, some do so in every piece.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let Some(index) = index else { return self.find_unnumbered(id, name) };
        let at = self.slots.iter().rposition(|slot| slot.index == Some(index))?;
        let slot = self.slots.get(at)?;
        let another = !name.is_empty() && differs(id, &slot.call.id);
        (!another).then_some(at)
    }

    fn find_unnumbered(&self, id: &str, name: &str) -> Option<usize> {
        if !id.is_empty() {
            let known = self.slots.iter().rposition(|slot| slot.call.id == id);
            return known.or_else(|| if name.is_empty() { self.last() } else { None });
        }
        if name.is_empty() { self.last() } else { None }
    }

    fn last(&self) -> Option<usize> {
        self.slots.len().checked_sub(1)
    }
}

fn differs(id: &str, other: &str) -> bool {
    !id.is_empty() && !other.is_empty() && id != other
}

fn append(arguments: &mut String, piece: &str) -> Result<(), String> {
    if !piece.starts_with('"') {
        arguments.push_str(piece);
        return Ok(());
    }
    let text: wire::Text<'_> = serde_json::from_str(piece).map_err(|error| error.to_string())?;
    arguments.push_str(&text.0);
    Ok(())
}
