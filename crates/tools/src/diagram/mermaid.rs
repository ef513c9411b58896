//! Mermaid, drawn by a library on a thread of its own.
//!
//! A library for pictures takes time that depends on the source and may recurse or panic. The
//! source is bounded, the thread has a large stack, a panic ends nothing but that thread, and
//! whoever waits gives up after a while. A thread cannot be ended, so few may draw at once: if all
//! of them hang, further calls fail and the daemon goes on.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mermaid_svg::Diagram;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::svg;

/// How long drawing may take, waiting for a seat included.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many draw at once.
const SEATS: usize = 2;
/// Enough for the deepest source; only what is used of it is ever given.
const STACK: usize = 256 * 1024 * 1024;

/// Where diagrams are drawn.
#[derive(Clone, Debug)]
pub(crate) struct Studio {
    seats: Arc<Semaphore>,
}

impl Studio {
    pub(crate) fn new() -> Self {
        Self { seats: Arc::new(Semaphore::new(SEATS)) }
    }

    /// A checked picture of this source.
    pub(crate) async fn draw(&self, source: String) -> Result<String, String> {
        let drawn = timeout(PATIENCE, self.apart(move || draw(&source))).await;
        let late = |_| Err(format!("drawing took longer than {}s", PATIENCE.as_secs()));
        drawn.unwrap_or_else(late)
    }

    /// Does work on a thread of its own.
    async fn apart(
        &self,
        work: impl FnOnce() -> Result<String, String> + Send + 'static,
    ) -> Result<String, String> {
        let seat = Arc::clone(&self.seats).acquire_owned().await;
        let seat = seat.map_err(|error| error.to_string())?;
        let (done, drawn) = oneshot::channel();
        let body = move || {
            let _seat = seat;
            // Nobody listens any more if the call was given up.
            let _ = done.send(work());
        };
        let thread = thread::Builder::new().name("diagram".to_owned()).stack_size(STACK);
        thread.spawn(body).map_err(|error| format!("nothing was drawn: {error}"))?;
        drawn.await.map_err(|_| "the diagram cannot be drawn: the drawing broke off".to_owned())?
    }
}

fn draw(source: &str) -> Result<String, String> {
    let diagram = mermaid_svg::parse(source).map_err(|error| error.to_string())?;
    if !grows_with_its_source(&diagram) {
        return Err("this kind of chart is not drawn here; there are flowchart, sequence, class, \
                    state, ER, requirement, C4, architecture and git graphs, mindmaps, \
                    timelines, journeys, kanban boards, pies, quadrants and sankeys"
            .to_owned());
    }
    let picture = mermaid_svg::render(source).map_err(|error| error.to_string())?;
    svg::check(&picture).map(str::to_owned)
}

/// Whether a short source cannot mean an endless picture, as `1s` ticks over a thousand years do.
fn grows_with_its_source(diagram: &Diagram) -> bool {
    matches!(
        diagram,
        Diagram::Pie(_)
            | Diagram::Sequence(_)
            | Diagram::Flowchart(_)
            | Diagram::State(_)
            | Diagram::Class(_)
            | Diagram::Er(_)
            | Diagram::Journey(_)
            | Diagram::Timeline(_)
            | Diagram::Sankey(_)
            | Diagram::Quadrant(_)
            | Diagram::Mindmap(_)
            | Diagram::GitGraph(_)
            | Diagram::Requirement(_)
            | Diagram::C4(_)
            | Diagram::Architecture(_)
            | Diagram::Kanban(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_and_leaves_its_seat() {
        let studio = Studio::new();
        for _ in 0..=SEATS {
            let got = studio.apart(|| panic!("on purpose")).await;
            assert_eq!(got, Err("the diagram cannot be drawn: the drawing broke off".to_owned()));
        }
        assert_eq!(studio.apart(|| Ok("x".to_owned())).await, Ok("x".to_owned()));
    }

    /// The clock jumps ahead whenever everybody waits.
    #[tokio::test(start_paused = true)]
    async fn when_all_seats_are_taken_one_gives_up() {
        let studio = Studio::new();
        let _taken = studio.seats.acquire_many(2).await.expect("it is open");
        let got = studio.draw("pie\n\"a\" : 1".to_owned()).await;
        assert_eq!(got, Err("drawing took longer than 20s".to_owned()));
    }
}
