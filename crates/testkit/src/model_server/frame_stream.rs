//! Sends frames with the delays and the ending of the step.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::Stream;
use tokio::time::Sleep;

use super::Shared;
use super::response::Frames;
use super::script::Step;

/// How often the file that an answer waits for is checked.
const HOLD_INTERVAL: Duration = Duration::from_millis(10);

/// One streamed answer, counted while it lives.
pub(super) struct FrameStream {
    frames: Frames,
    gap: Duration,
    hold_until: Option<PathBuf>,
    pause: Option<Pin<Box<Sleep>>>,
    end: StreamEnd,
    stopped: Pin<Box<dyn Future<Output = ()> + Send>>,
    shared: Arc<Shared>,
}

#[derive(Clone, Copy)]
enum StreamEnd {
    Proper,
    Silence,
    /// The connection is dropped after the pieces are sent, because a failing body loses its unsent bytes.
    FlushThenCut,
    Cut,
}

impl FrameStream {
    pub(super) fn new(frames: Frames, step: &Step, shared: &Arc<Shared>) -> Self {
        shared.streaming.send_modify(|count| *count += 1);
        let mut stopped = shared.stopped.clone();
        Self {
            frames,
            gap: step.gap,
            hold_until: step.hold_until.clone(),
            pause: None,
            end: match (step.cut, step.hang) {
                (true, _) => StreamEnd::FlushThenCut,
                (false, true) => StreamEnd::Silence,
                (false, false) => StreamEnd::Proper,
            },
            stopped: Box::pin(async move { while stopped.changed().await.is_ok() {} }),
            shared: Arc::clone(shared),
        }
    }

    /// True if the next frame has to wait for a file.
    fn is_held(&self) -> bool {
        let waits = self.hold_until.as_ref().is_some_and(|file| !file.exists());
        waits && self.frames.is_at_last_text()
    }

    /// The error of a body stream that drops its connection.
    fn cut() -> io::Error {
        io::Error::other("cut by the script")
    }
}

impl Drop for FrameStream {
    fn drop(&mut self) {
        self.shared.streaming.send_modify(|count| *count -= 1);
    }
}

impl Stream for FrameStream {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.stopped.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Some(Err(Self::cut())));
        }
        loop {
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(cx));
                this.pause = None;
            }
            if !this.is_held() {
                break;
            }
            this.pause = Some(Box::pin(tokio::time::sleep(HOLD_INTERVAL)));
        }
        if let Some(frame) = this.frames.next() {
            let paced = !this.gap.is_zero();
            this.pause = paced.then(|| Box::pin(tokio::time::sleep(this.gap)));
            return Poll::Ready(Some(Ok(frame)));
        }
        match this.end {
            StreamEnd::Proper => Poll::Ready(None),
            StreamEnd::Silence => Poll::Pending,
            StreamEnd::FlushThenCut => {
                // The server flushes whenever a body has nothing ready.
                this.end = StreamEnd::Cut;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            StreamEnd::Cut => Poll::Ready(Some(Err(Self::cut()))),
        }
    }
}
