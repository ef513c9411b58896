//! The time from the start of the process until its ready line.

use anyhow::Result;

use super::Plan;
use crate::child::Child;
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

const SESSIONS: usize = 20;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("start").await?;
    for _ in 0..SESSIONS {
        rig.session(&daemon).await?.turn(rig.script(1, 0)).await?;
    }
    daemon.stop().await?;
    let mut samples: [Vec<f64>; 3] = Default::default();
    for round in 0..plan.rounds(15, 5) {
        let [proxy, empty, warm] = &mut samples;
        proxy.push(ready(rig.another_proxy().await?).await?);
        empty.push(ready(rig.daemon(&format!("start-{round}")).await?).await?);
        warm.push(ready(rig.daemon("start").await?).await?);
    }
    let [proxy, empty, warm] = samples.each_ref().map(|samples| median(samples));
    Ok(vec![
        Row::new("start to ready, empty data, ms").proxy(proxy).quintet(empty).aim("<= 30 ms"),
        Row::new("start to ready, 20 sessions, ms").proxy(proxy).quintet(warm).aim("<= 30 ms"),
    ])
}

async fn ready(child: Child) -> Result<f64> {
    let took = child.ready.as_secs_f64() * 1000.0;
    child.stop().await?;
    Ok(took)
}
