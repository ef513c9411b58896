//! Throughput and latency of 32 concurrent sessions.

use anyhow::Result;
use tokio::task::JoinSet;

use super::{Plan, latency};
use crate::child::Child;
use crate::client::{Client, Turn};
use crate::clock::{median, ms, percentile};
use crate::rig::Rig;
use crate::table::Row;

const SESSIONS: usize = 32;
/// As fast as possible.
const FAST: (usize, u64) = (5000, 0);
/// A model that writes 200 deltas per second to each session.
const STEADY: (usize, u64) = (200, 5000);

#[derive(Default)]
struct Samples {
    per_second: Vec<f64>,
    middle: Vec<f64>,
    late: Vec<f64>,
}

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("crowd").await?;
    let (mut by_proxy, mut by_quintet) = (Samples::default(), Samples::default());
    for _ in 0..plan.rounds(5, 2) {
        by_proxy.take(rig, None).await?;
        by_quintet.take(rig, Some(&daemon)).await?;
    }
    daemon.stop().await?;
    let row = |what: &str, of: fn(&Samples) -> &Vec<f64>| {
        Row::new(what).proxy(median(of(&by_proxy))).quintet(median(of(&by_quintet)))
    };
    Ok(vec![
        row("deltas per second, 32 sessions", |samples| &samples.per_second).aim(">= 0.6x"),
        row("latency added, 32 sessions, median, ms", |samples| &samples.middle).aim("<= 1.3x"),
        row("latency added, 32 sessions, 99 of 100, ms", |samples| &samples.late),
    ])
}

impl Samples {
    async fn take(&mut self, rig: &Rig, daemon: Option<&Child>) -> Result<()> {
        let mut clients = Vec::new();
        for _ in 0..SESSIONS {
            clients.push(match daemon {
                Some(daemon) => rig.session(daemon).await?,
                None => Client::proxy(rig.proxy.address).await?,
            });
        }
        let (clients, turns) = together(rig, clients, FAST).await?;
        let sent = turns.iter().map(|(_, turn)| turn.sent).min().unwrap_or_default();
        let last = turns.iter().filter_map(|(_, turn)| turn.seen.arrivals.last()).max();
        let took = ms(sent, last.copied().unwrap_or_default());
        self.per_second.push((SESSIONS * FAST.0) as f64 / took * 1000.0);
        let (_, turns) = together(rig, clients, STEADY).await?;
        let delays = latency::added(rig, &turns).await?;
        self.middle.push(median(&delays));
        self.late.push(percentile(&delays, 0.99));
        Ok(())
    }
}

async fn together(
    rig: &Rig,
    clients: Vec<Client>,
    (deltas, gap_us): (usize, u64),
) -> Result<(Vec<Client>, Vec<(u64, Turn)>)> {
    let mut set = JoinSet::new();
    for mut client in clients {
        let script = rig.script(deltas, gap_us);
        set.spawn(async move {
            let turn = client.turn(script).await?;
            Ok::<_, anyhow::Error>((client, (script.id, turn)))
        });
    }
    let mut done = Vec::new();
    while let Some(one) = set.join_next().await {
        done.push(one??);
    }
    Ok(done.into_iter().unzip())
}
