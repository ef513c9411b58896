//! The agent of a client: its instructions, its tools, and the setup of its turns.

pub(crate) mod builtin_tools;
pub(crate) mod system_prompt;
pub(crate) mod tool_selection;
pub(crate) mod turn_setup;
