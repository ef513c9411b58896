//! From the client's request to the model's, and to the first text at the client.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::sleep;

use super::Plan;
use crate::client::Client;
use crate::clock::{median, ms};
use crate::rig::Rig;
use crate::table::Row;

const TURNS: usize = 20;
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Samples {
    asked: Vec<f64>,
    text: Vec<f64>,
}

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("asked").await?;
    let mut proxy = Client::proxy(rig.proxy.address).await?;
    let (mut by_proxy, mut by_quintet) = (Samples::default(), Samples::default());
    let (mut rested_proxy, mut rested) = (Samples::default(), Samples::default());
    // The first turns only warm up.
    turns(rig, &mut proxy, Duration::ZERO).await?;
    turns(rig, &mut rig.session(&daemon).await?, Duration::ZERO).await?;
    for _ in 0..plan.rounds(10, 3) {
        let mut session = rig.session(&daemon).await?;
        by_proxy.add(turns(rig, &mut proxy, Duration::ZERO).await?);
        by_quintet.add(turns(rig, &mut session, Duration::ZERO).await?);
        rested_proxy.add(turns(rig, &mut proxy, PAUSE).await?);
        rested.add(turns(rig, &mut session, PAUSE).await?);
    }
    daemon.stop().await?;
    let row = |what: &str, proxy: &[f64], quintet: &[f64]| {
        Row::new(what).proxy(median(proxy)).quintet(median(quintet))
    };
    Ok(vec![
        row("client sends -> model is asked, ms", &by_proxy.asked, &by_quintet.asked)
            .aim("<= 2x proxy")
            .note("each turn right after the last"),
        row("client sends -> model is asked, 5 ms after, ms", &rested_proxy.asked, &rested.asked)
            .note("everything is asleep by then"),
        row("client sends -> first text, ms", &by_proxy.text, &by_quintet.text)
            .note("one sync of the disk is in it"),
    ])
}

impl Samples {
    fn add(&mut self, more: Self) {
        self.asked.extend(more.asked);
        self.text.extend(more.text);
    }
}

async fn turns(rig: &Rig, client: &mut Client, pause: Duration) -> Result<Samples> {
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        if !pause.is_zero() {
            sleep(pause).await;
        }
        let ask = rig.ask(1, 0);
        turns.push((ask.id, client.turn(ask).await?));
    }
    let log = rig.log().await?;
    let arrived: HashMap<u64, u64> = log.iter().map(|call| (call.id, call.arrived)).collect();
    let mut samples = Samples::default();
    for (id, turn) in turns {
        let arrived = arrived.get(&id).context("the model was not asked")?;
        samples.asked.push(ms(turn.sent, *arrived));
        samples.text.push(ms(turn.sent, *turn.seen.arrivals.first().context("no text")?));
    }
    Ok(samples)
}
