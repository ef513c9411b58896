//! CPU time of a turn with a short answer, in one session and in new ones.

use anyhow::Result;

use super::Plan;
use crate::child::Child;
use crate::client::Client;
use crate::clock::median;
use crate::rig::{Rig, cpu_of};
use crate::table::Row;

/// CPU time is counted in hundredths of a second, so a sample needs many turns.
const TURNS: usize = 100;
const SESSIONS: usize = 3;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let daemon = rig.daemon("cpu").await?;
    let mut samples: [Vec<f64>; 4] = Default::default();
    turns(rig, &mut clients(rig, None).await?).await?;
    turns(rig, &mut clients(rig, Some(&daemon)).await?).await?;
    for _ in 0..plan.rounds(5, 1) {
        let mut proxy = clients(rig, None).await?;
        let mut session = clients(rig, Some(&daemon)).await?;
        let used = [
            cpu_of(&rig.proxy, turns(rig, &mut proxy)).await?.1,
            cpu_of(&daemon, turns(rig, &mut session)).await?.1,
            cpu_of(&rig.proxy, fresh(rig, None)).await?.1,
            cpu_of(&daemon, fresh(rig, Some(&daemon))).await?.1,
        ];
        for (samples, used) in samples.iter_mut().zip(used) {
            samples.push(used / (SESSIONS * TURNS) as f64);
        }
    }
    daemon.stop().await?;
    let [one_proxy, one, fresh_proxy, fresh] = samples.each_ref().map(|samples| median(samples));
    Ok(vec![
        Row::new("CPU per turn, sessions of 100 turns, ms")
            .proxy(one_proxy)
            .quintet(one)
            .aim("<= 1.5 ms"),
        Row::new("CPU per turn, fresh sessions, ms")
            .proxy(fresh_proxy)
            .quintet(fresh)
            .note("creating and following the session is in it"),
    ])
}

async fn clients(rig: &Rig, daemon: Option<&Child>) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(client(rig, daemon).await?);
    }
    Ok(clients)
}

async fn client(rig: &Rig, daemon: Option<&Child>) -> Result<Client> {
    match daemon {
        Some(daemon) => rig.session(daemon).await,
        None => Client::proxy(rig.proxy.address).await,
    }
}

/// Runs turns one after the other, in existing sessions.
async fn turns(rig: &Rig, clients: &mut [Client]) -> Result<()> {
    for client in clients {
        for _ in 0..TURNS {
            client.turn(rig.script(1, 0)).await?;
        }
    }
    Ok(())
}

/// Runs turns one after the other, each in a new session.
async fn fresh(rig: &Rig, daemon: Option<&Child>) -> Result<()> {
    for _ in 0..SESSIONS * TURNS {
        client(rig, daemon).await?.turn(rig.script(1, 0)).await?;
    }
    Ok(())
}
