//! Requests of other nodes that were carried out here, by key, so that one that comes again is not
//! carried out again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::request::{Reply, Request, is_final};
use crate::runtime::{Runtime, lock};

/// Requests that are remembered. A sender that gave up is not served for ever.
const REMEMBERED: usize = 4096;

/// The newest requests.
#[derive(Debug, Default)]
pub(super) struct Served {
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    replies: HashMap<String, watch::Receiver<Option<Arc<[u8]>>>>,
    /// The keys, oldest first.
    order: VecDeque<String>,
}

impl Served {
    /// The reply to a request, which is carried out now unless it was before. It goes on if the sender
    /// hangs up.
    pub(super) async fn serve(&self, runtime: &Runtime, request: Request) -> Arc<[u8]> {
        let mut reply = self.begin(runtime, request);
        let reply = reply.wait_for(Option::is_some).await;
        let reply = reply.ok().and_then(|reply| reply.clone());
        reply.unwrap_or_else(|| Reply::Closing.encode().into())
    }

    fn begin(&self, runtime: &Runtime, request: Request) -> watch::Receiver<Option<Arc<[u8]>>> {
        let mut requests = lock(&self.requests);
        if let Some(reply) = requests.replies.get(&request.key) {
            return reply.clone();
        }
        let (sender, reply) = watch::channel(None);
        requests.remember(request.key.clone(), reply.clone());
        drop(requests);
        let owner = runtime.clone();
        runtime.shared().tasks.spawn(async move {
            let Request { key, session, action, .. } = request;
            let reply: Arc<[u8]> = Reply::from(owner.here(&session, action).await).encode().into();
            if !is_final(&reply) {
                lock(&owner.shared().membership.served.requests).forget(&key);
            }
            sender.send_replace(Some(reply));
        });
        reply
    }
}

impl Requests {
    fn remember(&mut self, key: String, reply: watch::Receiver<Option<Arc<[u8]>>>) {
        self.order.push_back(key.clone());
        self.replies.insert(key, reply);
        while self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.replies.remove(&oldest);
        }
    }

    fn forget(&mut self, key: &str) {
        self.replies.remove(key);
        self.order.retain(|known| known != key);
    }
}
