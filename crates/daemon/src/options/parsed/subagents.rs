//! The options of subagents.

use quintet_kernel::event::Budget;
pub(crate) use quintet_kernel::policy::SubagentLimits as Limits;

use crate::options::layers::Layers;

/// The limits of subagents; `None` if there are none.
pub(super) fn parse(layers: &Layers) -> Option<Limits> {
    let number = |name: &str| layers.number(&format!("subagents.{name}"));
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let usual = Limits::default();
    let limits = Limits {
        depth: number("depth").map_or(usual.depth, small),
        at_once: number("at_once").map_or(usual.at_once, |most| small(most) as usize),
        budget: Budget {
            steps: number("steps").map(small),
            tokens: number("tokens"),
            time_ms: number("seconds").map(|seconds| seconds.saturating_mul(1000)),
        },
    };
    let on = layers.flag("tools.spawn_agent").unwrap_or(true);
    (on && limits.depth > 0 && limits.at_once > 0).then_some(limits)
}
