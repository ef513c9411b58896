// The event stream of the page. It reconnects by itself at its last position, and treats silence as a lost connection.

/** Silence after which the connection counts as lost; the daemon sends a heartbeat every 5 s. */
const SILENCE_MS = 12_000;
const RETRY_MS = [250, 500, 1000, 2000, 4000];

export type Frame = { event: string; data: any };

export interface Source {
  /** The query of the next connection. */
  query(): string;
  frame(frame: Frame): void;
  state(state: "live" | "connecting" | "offline", retryMs?: number): void;
}

export class Stream {
  private abort = new AbortController();
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private source: Source) {
    const soon = () => this.timer !== undefined && this.reconnect();
    addEventListener("online", soon);
    document.addEventListener("visibilitychange", () => !document.hidden && soon());
  }

  /** Connects again, for what the page shows now. */
  reconnect() {
    this.abort.abort();
    clearTimeout(this.timer);
    this.timer = undefined;
    this.abort = new AbortController();
    void this.run(this.abort);
  }

  private async run(abort: AbortController) {
    let watchdog: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort("silence"), SILENCE_MS);
    };
    this.source.state("connecting");
    try {
      alive();
      const response = await fetch(`/api/stream?${this.source.query()}`, { signal: abort.signal });
      if (response.status === 401) location.reload();
      if (!response.ok || !response.body) throw new Error(String(response.status));
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        alive();
        const frames = (rest + value).split("\n\n");
        rest = frames.pop() ?? "";
        for (const text of frames) {
          const frame = parse(text);
          if (frame?.event === "hello") {
            this.failures = 0;
            this.source.state("live");
          }
          if (frame) this.source.frame(frame);
        }
      }
    } catch {
      // Lost, aborted or refused connections are all retried below.
    } finally {
      clearTimeout(watchdog);
    }
    if (abort !== this.abort) return;
    const wait = RETRY_MS[Math.min(this.failures++, RETRY_MS.length - 1)]!;
    this.source.state("offline", wait);
    this.timer = setTimeout(() => this.reconnect(), wait);
  }
}

function parse(text: string): Frame | undefined {
  const event = /^event: (.*)$/m.exec(text)?.[1];
  const data = /^data: (.*)$/m.exec(text)?.[1];
  return event && data ? { event, data: JSON.parse(data) } : undefined;
}
