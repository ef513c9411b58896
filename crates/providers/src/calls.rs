//! Assembles tool calls from their pieces.

use quintet_kernel::model::RawToolCall;

/// Maximum number of calls of one answer.
const CALLS_LIMIT: usize = 1024;
/// Maximum length of all arguments of an answer, in bytes.
const ARGUMENTS_BYTES_LIMIT: usize = 16 << 20;

/// The calls of an answer so far, in the order in which they started.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    partial_calls: Vec<PartialCall>,
    bytes: usize,
}

/// A call that may still grow.
#[derive(Debug)]
pub(crate) struct PartialCall {
    /// The number by which the API identifies the call, if it has one.
    pub(crate) key: Option<u64>,
    pub(crate) call: RawToolCall,
}

impl Calls {
    pub(crate) fn partial_calls(&self) -> &[PartialCall] {
        &self.partial_calls
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.partial_calls.is_empty()
    }

    pub(crate) fn len(&self) -> u64 {
        self.partial_calls.len() as u64
    }

    pub(crate) fn finish(&mut self) -> Vec<RawToolCall> {
        std::mem::take(&mut self.partial_calls).into_iter().map(|slot| slot.call).collect()
    }

    /// Starts a call and returns its position. Fails if there are too many.
    pub(crate) fn begin(
        &mut self,
        key: Option<u64>,
        id: &str,
        tool: &str,
    ) -> Result<usize, String> {
        if self.partial_calls.len() == CALLS_LIMIT {
            return Err("too many tool calls".into());
        }
        let call = RawToolCall { id: id.into(), tool: tool.into(), arguments: String::new() };
        self.partial_calls.push(PartialCall { key, call });
        Ok(self.partial_calls.len() - 1)
    }

    /// Sets the id and the tool if they are still empty.
    pub(crate) fn name(&mut self, at: usize, id: &str, tool: &str) {
        let Some(slot) = self.partial_calls.get_mut(at) else { return };
        if slot.call.id.is_empty() {
            slot.call.id.push_str(id);
        }
        if slot.call.tool.is_empty() {
            slot.call.tool.push_str(tool);
        }
    }

    /// The position of the call with this number of the API.
    pub(crate) fn find(&self, key: u64) -> Option<usize> {
        self.partial_calls.iter().rposition(|slot| slot.key == Some(key))
    }

    /// Adds to the arguments of a call. Fails if they become too long.
    pub(crate) fn append(&mut self, at: usize, arguments: &str) -> Result<(), String> {
        let Some(slot) = self.partial_calls.get_mut(at) else { return Ok(()) };
        self.bytes += arguments.len();
        if self.bytes > ARGUMENTS_BYTES_LIMIT {
            return Err("too long a tool call".into());
        }
        slot.call.arguments.push_str(arguments);
        Ok(())
    }

    /// Sets the arguments of a call that has none yet. Fails if they are too long.
    pub(crate) fn complete(&mut self, at: usize, arguments: &str) -> Result<(), String> {
        match self.partial_calls.get(at) {
            Some(slot) if slot.call.arguments.is_empty() => self.append(at, arguments),
            Some(_) | None => Ok(()),
        }
    }
}
