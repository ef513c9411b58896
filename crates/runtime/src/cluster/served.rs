//! Requests of other nodes that were executed here, by key, so that a repeated request is not
//! executed again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::request::{Reply, Request, is_final};
use crate::runtime::{Runtime, lock};

/// Maximum number of recorded requests; the oldest are dropped.
const REQUESTS_LIMIT: usize = 4096;
/// Maximum size of the recorded replies, in bytes.
const REPLIES_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// The newest requests.
#[derive(Debug, Default)]
pub(super) struct Served {
    requests: Mutex<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    replies: HashMap<String, Remembered>,
    /// The keys, oldest first.
    order: VecDeque<String>,
    /// The size of all stored replies.
    bytes: usize,
}

#[derive(Debug)]
struct Remembered {
    reply: watch::Receiver<Option<Arc<[u8]>>>,
    /// The size of the reply in bytes, once it is known.
    size: usize,
}

impl Served {
    /// The reply to a request, which is executed unless it was before. The work continues if the
    /// sender disconnects.
    pub(super) async fn serve(&self, runtime: &Runtime, request: Request) -> Arc<[u8]> {
        let mut reply = self.begin(runtime, request);
        let reply = reply.wait_for(Option::is_some).await;
        let reply = reply.ok().and_then(|reply| reply.clone());
        reply.unwrap_or_else(|| Reply::Closing.encode().into())
    }

    fn begin(&self, runtime: &Runtime, request: Request) -> watch::Receiver<Option<Arc<[u8]>>> {
        let mut requests = lock(&self.requests);
        if let Some(known) = requests.replies.get(&request.key) {
            return known.reply.clone();
        }
        let (sender, reply) = watch::channel(None);
        requests.remember(request.key.clone(), reply.clone());
        drop(requests);
        let owner = runtime.clone();
        runtime.shared().tasks.spawn(async move {
            let Request { key, session, action, .. } = request;
            let reply: Arc<[u8]> = Reply::from(owner.here(&session, action).await).encode().into();
            let size = is_final(&reply).then_some(reply.len());
            lock(&owner.shared().membership.served.requests).finish(&key, size);
            sender.send_replace(Some(reply));
        });
        reply
    }
}

impl Requests {
    fn remember(&mut self, key: String, reply: watch::Receiver<Option<Arc<[u8]>>>) {
        self.order.push_back(key.clone());
        self.replies.insert(key, Remembered { reply, size: 0 });
        self.evict();
    }

    /// Records the size of a reply; without one the request is dropped, so that it can be retried.
    fn finish(&mut self, key: &str, size: Option<usize>) {
        match (self.replies.get_mut(key), size) {
            (Some(known), Some(size)) => {
                known.size = size;
                self.bytes += size;
                self.evict();
            }
            (Some(_), None) => self.forget(key),
            (None, _) => {}
        }
    }

    fn evict(&mut self) {
        while (self.order.len() > REQUESTS_LIMIT || self.bytes > REPLIES_BYTES_LIMIT)
            && let Some(oldest) = self.order.front().cloned()
        {
            self.forget(&oldest);
        }
    }

    fn forget(&mut self, key: &str) {
        self.bytes -= self.replies.remove(key).map_or(0, |known| known.size);
        self.order.retain(|known| known != key);
    }
}
