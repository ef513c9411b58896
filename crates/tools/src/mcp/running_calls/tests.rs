//! Whose question it is, and the time that a call has meanwhile.

use std::time::Duration;

use quintet_kernel::SessionId;
use tokio::time::{sleep, timeout};

use super::{CallTimer, RunningCall, RunningCalls};
use crate::git::quiet;

fn timer() -> CallTimer {
    CallTimer::new(Duration::from_secs(10), Duration::from_secs(100))
}

fn call(session: &str) -> RunningCall {
    RunningCall::new(SessionId::parse(session).unwrap(), quiet(), timer())
}

#[test]
fn nobody_is_asked_for_another_session() {
    let calls = RunningCalls::default();
    let asks = |call: &RunningCall| calls.asking().is_some_and(|asking| asking.is(call));
    assert!(calls.asking().is_none());
    let first = calls.list(call("a"));
    let second = calls.list(call("a"));
    assert!(asks(&second.call));
    let other = calls.list(call("b"));
    assert!(calls.asking().is_none());
    drop((second, other));
    assert!(asks(&first.call));
}

#[tokio::test(start_paused = true)]
async fn time_stands_still_while_the_user_is_asked() {
    let timer = timer();
    let expires_within = |seconds| timeout(Duration::from_secs(seconds), timer.expired());
    sleep(Duration::from_secs(9)).await;
    timer.asked();
    assert!(expires_within(1000).await.is_err());
    timer.answered();
    assert!(expires_within(9).await.is_err());
    timer.progressed();
    assert!(expires_within(9).await.is_err());
    assert!(expires_within(2).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn progress_does_not_help_for_ever() {
    let timer = timer();
    let progress = async {
        for _ in 0..100 {
            sleep(Duration::from_secs(5)).await;
            timer.progressed();
        }
    };
    tokio::select! {
        () = timer.expired() => {}
        () = progress => panic!("the call may take as long as it likes"),
    }
}
