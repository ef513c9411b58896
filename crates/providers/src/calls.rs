//! Puts tool calls together from their pieces.

use quintet_kernel::model::AskedCall;

/// More than this is no answer but an accident.
const MOST_CALLS: usize = 1024;
/// The longest that all arguments of an answer may be.
const LONGEST_ARGUMENTS: usize = 16 << 20;

/// The calls of an answer so far, in the order in which they began.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    slots: Vec<Slot>,
    bytes: usize,
}

/// A call so far.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The number by which the API tells its calls apart, where it has one.
    pub(crate) key: Option<u64>,
    pub(crate) call: AskedCall,
}

impl Calls {
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(crate) fn len(&self) -> u64 {
        self.slots.len() as u64
    }

    pub(crate) fn finish(&mut self) -> Vec<AskedCall> {
        std::mem::take(&mut self.slots).into_iter().map(|slot| slot.call).collect()
    }

    /// Begins a call; gives its place.
    pub(crate) fn begin(
        &mut self,
        key: Option<u64>,
        id: &str,
        tool: &str,
    ) -> Result<usize, String> {
        if self.slots.len() == MOST_CALLS {
            return Err("too many tool calls".into());
        }
        let call = AskedCall { id: id.into(), tool: tool.into(), arguments: String::new() };
        self.slots.push(Slot { key, call });
        Ok(self.slots.len() - 1)
    }

    /// Fills in what is still missing.
    pub(crate) fn name(&mut self, at: usize, id: &str, tool: &str) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        if slot.call.id.is_empty() {
            slot.call.id.push_str(id);
        }
        if slot.call.tool.is_empty() {
            slot.call.tool.push_str(tool);
        }
    }

    /// The call that the API numbers so.
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        self.slots.iter().rposition(|slot| slot.key == Some(key))
    }

    /// Adds to the arguments of a call.
    pub(crate) fn append(&mut self, at: usize, arguments: &str) -> Result<(), String> {
        let Some(slot) = self.slots.get_mut(at) else { return Ok(()) };
        self.bytes += arguments.len();
        if self.bytes > LONGEST_ARGUMENTS {
            return Err("too long a tool call".into());
        }
        slot.call.arguments.push_str(arguments);
        Ok(())
    }

    /// Sets the arguments of a call that has none yet.
    pub(crate) fn complete(&mut self, at: usize, arguments: &str) -> Result<(), String> {
        match self.slots.get(at) {
            Some(slot) if slot.call.arguments.is_empty() => self.append(at, arguments),
            Some(_) | None => Ok(()),
        }
    }
}
