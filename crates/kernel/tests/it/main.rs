//! Integration tests of the kernel: the journal's format, and properties that hold for all inputs.

#[cfg(test)]
mod golden;
#[cfg(test)]
mod long_turns;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod world;
