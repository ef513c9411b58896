// One stream for all tabs of a browser, which allows six connections to a host. The tab that holds a
// lock reads the stream and passes every frame on; when it closes, another tab takes over. Without locks
// (a page that is not served from this machine) each tab has a stream of its own.

import { Stream, type Frame } from "./stream";

/** Silence after which a tab stops relying on the others and reads a stream of its own. */
const SILENCE_MS = 15_000;
const WATCH_LIMIT = 14;

export type Connection = "live" | "connecting" | "offline";

export interface Watch {
  session: string;
  position: string;
}

export interface Tab {
  /** The session that the tab shows, and the position up to which it has its events. */
  watch(): Watch | null;
  /** The time of the newest summary that the tab has, in microseconds. */
  since(): number;
  frame(frame: Frame): void;
  state(state: Connection, retryMs?: number): void;
}

type Message =
  | { kind: "frame"; frame: Frame }
  | { kind: "state"; state: Connection; retryMs?: number }
  | { kind: "watch"; tab: string; watch: Watch | null; since: number }
  | { kind: "leave"; tab: string }
  | { kind: "who" };

export class SharedStream {
  private id = crypto.randomUUID();
  private leads = false;
  private channel = new BroadcastChannel("quintet");
  private stream: Stream;
  private others = new Map<string, { watch: Watch | null; since: number }>();
  private watchdog: ReturnType<typeof setTimeout> | undefined;

  constructor(private tab: Tab) {
    this.stream = new Stream({
      query: () => this.query(),
      frame: (frame) => {
        tab.frame(frame);
        if (this.leads) this.send({ kind: "frame", frame });
        if (frame.event === "item" && frame.data.position) this.reached(frame.data.session, frame.data.position);
      },
      state: (state, retryMs) => {
        tab.state(state, retryMs);
        if (this.leads) this.send({ kind: "state", state, retryMs });
      },
    });
    this.channel.onmessage = (event: MessageEvent<Message>) => this.receive(event.data);
    addEventListener("pagehide", () => this.send({ kind: "leave", tab: this.id }));
    addEventListener("pageshow", (event) => event.persisted && this.update());
    if (navigator.locks) {
      void navigator.locks.request("quintet stream", { ifAvailable: true }, (lock) => {
        if (lock) return this.lead();
        this.alive();
        void navigator.locks.request("quintet stream", () => this.lead());
        this.announce();
        return undefined;
      });
    } else {
      this.leads = true;
      this.stream.reconnect();
    }
  }

  /** The tab shows another session, or has to read one again. */
  update() {
    if (this.leads) this.stream.reconnect();
    else this.announce();
  }

  private lead(): Promise<never> {
    clearTimeout(this.watchdog);
    this.leads = true;
    this.send({ kind: "who" });
    this.stream.reconnect();
    return new Promise(() => {});
  }

  private send(message: Message) {
    this.channel.postMessage(message);
  }

  private announce() {
    this.send({ kind: "watch", tab: this.id, watch: this.tab.watch(), since: this.tab.since() });
  }

  /** Other tabs were sent the same frames, so they are at the same position. */
  private reached(session: string, position: string) {
    for (const other of this.others.values()) {
      if (other.watch?.session === session) other.watch = { session, position };
    }
  }

  private alive() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => {
      this.leads = true;
      this.stream.reconnect();
    }, SILENCE_MS);
  }

  private receive(message: Message) {
    if (message.kind === "who") this.announce();
    if (this.leads) {
      if (message.kind === "watch") {
        this.others.delete(message.tab);
        this.others.set(message.tab, message);
        this.stream.reconnect();
      } else if (message.kind === "leave") {
        this.others.delete(message.tab);
      }
    } else if (message.kind === "frame") {
      this.alive();
      this.tab.frame(message.frame);
    } else if (message.kind === "state") {
      this.alive();
      this.tab.state(message.state, message.retryMs);
    }
  }

  /** The query for all tabs. A session that several tabs show is read from the position of the slowest. */
  private query(): string {
    const tabs = [{ watch: this.tab.watch(), since: this.tab.since() }, ...[...this.others.values()].reverse()];
    const watches = new Map<string, string>();
    for (const { watch } of tabs) {
      if (!watch || watches.size >= WATCH_LIMIT) continue;
      watches.set(watch.session, earlier(watches.get(watch.session), watch.position));
    }
    const query = new URLSearchParams();
    query.set("since", String(Math.min(...tabs.map((tab) => tab.since))));
    for (const [session, position] of watches) query.append("watch", `${session}@${position}`);
    return query.toString();
  }
}

/** A position from which neither of two tabs misses anything. A tab skips what it already has. */
function earlier(one: string | undefined, other: string): string {
  if (one === undefined) return other;
  const [a, b] = [one, other].map((position) => position.split(".").map(Number));
  return `${Math.min(a![0]!, b![0]!)}.${Math.min(a![1] ?? 0, b![1] ?? 0)}`;
}
