//! The kernel from outside: the journal's format, and properties that hold whatever happens.

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
