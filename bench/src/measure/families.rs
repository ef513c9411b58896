//! The cost of a delta in each family of model APIs: the same answer in four formats.

use anyhow::Result;

use super::Plan;
use crate::clock::median;
use crate::rig::{Rig, cpu_of};
use crate::table::Row;

const DELTAS: usize = 200_000;
const FAMILIES: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for family in FAMILIES {
        let data = format!("families-{family}");
        let daemon = rig.daemon_with(&data, &[&format!("providers.fake.api={family}")]).await?;
        let mut samples = Vec::new();
        for _ in 0..plan.rounds(5, 2) {
            let mut client = rig.session(&daemon).await?;
            let (_, cpu) = cpu_of(&daemon, client.turn(rig.script(DELTAS, 0))).await?;
            samples.push(cpu / 1000.0 * 1e6 / DELTAS as f64);
        }
        daemon.stop().await?;
        let what = format!("CPU for a million deltas, {family}, s");
        rows.push(Row::new(what).quintet(median(&samples)));
    }
    Ok(rows)
}
