// The state of the page: sessions, questions, the session that is shown, and the stream behind it.

import { get, message } from "./api";
import { headline } from "./format";
import { notify } from "./notify";
import { SharedStream } from "./shared";
import type { Frame } from "./stream";
import { Transcript } from "./transcript.svelte";
import type { Card, HistoryPage, Model, Question, Run, SessionInfo, Start } from "./types";

const HISTORY_PAGE = 300;
/** The page size for loading everything back to an old event. */
const LARGE_PAGE = 1_500;

export class OpenSession {
  readonly transcript = new Transcript();
  info = $state.raw<SessionInfo | null>(null);
  error = $state("");
  loaded = $state(false);
  loadingOlder = $state(false);
  /** The event that the reader wants to see; 0 for the newest. */
  target = $state(0);
  constructor(readonly id: string) {}

  async load() {
    try {
      const [page, info] = await Promise.all([
        get<HistoryPage>(`sessions/${this.id}/history`, { limit: HISTORY_PAGE }),
        get<SessionInfo>(`sessions/${this.id}`),
      ]);
      this.transcript.load(page.events, page.first, page.position);
      this.info = info;
      this.error = "";
      this.loaded = true;
    } catch (error) {
      this.loaded = false;
      this.error = message(error);
    }
  }

  /** Loads older events, back to this one. */
  async reach(event: number) {
    for (let first = Infinity; this.transcript.first > event && this.transcript.first < first; ) {
      first = this.transcript.first;
      await this.older(LARGE_PAGE);
    }
  }

  async older(limit = HISTORY_PAGE) {
    if (this.loadingOlder || this.transcript.first <= 1) return;
    this.loadingOlder = true;
    try {
      const page = await get<HistoryPage>(`sessions/${this.id}/history`, {
        limit,
        before: this.transcript.first,
      });
      this.transcript.prepend(page.events, page.first);
    } finally {
      this.loadingOlder = false;
    }
  }
}

class App {
  cards = $state.raw<Record<string, Card>>({});
  questions = $state.raw<Question[]>([]);
  models = $state.raw<Model[]>([]);
  runs = $state.raw<Run[]>([]);
  defaultModel = $state("");
  next = $state<string | null>(null);
  connection = $state<"live" | "connecting" | "offline">("connecting");
  retryMs = $state(0);
  boot = $state(0);
  restarted = $state(0);
  version = $state("");
  storage = $state<string | null>(null);
  readsPictures = $state(false);
  transcribes = $state(false);
  speaks = $state(false);
  /** How many followers of each front end a session has. */
  presence = $state.raw<Record<string, Record<string, number>>>({});
  started = $state(false);
  path = $state(location.pathname);
  session = $state.raw<OpenSession | null>(null);
  now = $state(Date.now());

  private loadingModels = false;
  private stream = new SharedStream({
    watch: () => (this.session?.loaded ? { session: this.session.id, position: this.session.transcript.position } : null),
    since: () => Math.max(0, (this.sorted[0]?.updated ?? 0) - 1_000_000),
    frame: (frame) => this.frame(frame),
    state: (state, retryMs) => {
      // A reconnection that succeeds at once is not shown.
      if (state !== "connecting" || !this.started) this.connection = state;
      this.retryMs = retryMs ?? 0;
    },
  });

  sorted = $derived(
    Object.values(this.cards).sort((one, other) => other.updated - one.updated || (one.id < other.id ? 1 : -1)),
  );

  async begin() {
    addEventListener("popstate", () => this.show(location.pathname, location.hash));
    setInterval(() => {
      this.now = Date.now();
      if (this.path === "/") void this.loadRuns();
    }, 20_000);
    void this.loadStart();
    await this.show(location.pathname, location.hash);
  }

  private async loadStart() {
    for (;;) {
      try {
        const start = await get<Start>("start");
        this.merge(start.sessions);
        this.next = start.next;
        this.runs = start.runs;
        this.defaultModel = start.default_model;
        this.version = start.version;
        this.storage = start.storage;
        this.readsPictures = start.reads_pictures;
        this.transcribes = start.transcribes;
        this.speaks = start.speaks;
        this.boot ||= start.boot;
        this.started = true;
        return;
      } catch {
        await new Promise((done) => setTimeout(done, 1000));
      }
    }
  }

  /** Loads the list of models once, when it is first needed. */
  async loadModels() {
    if (this.models.length > 0 || this.loadingModels) return;
    this.loadingModels = true;
    try {
      this.models = await get<Model[]>("models");
    } catch {
      // The default model can be used without a list.
    } finally {
      this.loadingModels = false;
    }
  }

  async loadRuns() {
    try {
      this.runs = (await get<{ runs: Run[] }>("runs")).runs;
    } catch {
      // The last list stays; the banner says that the daemon is not responding.
    }
  }

  async more() {
    if (!this.next) return;
    const page = await get<{ sessions: Card[]; next: string | null }>("sessions", { after: this.next });
    this.merge(page.sessions);
    this.next = page.next;
  }

  /** Opens a page. `#` and a number after the path of a session name an event to show. */
  navigate(path: string, hash = "") {
    if (path + hash !== location.pathname + location.hash) history.pushState(null, "", path + hash);
    void this.show(path, hash);
  }

  private async show(path: string, hash = "") {
    this.path = path;
    const target = Number(/^#(\d+)$/.exec(hash)?.[1] ?? 0);
    const id = /^\/sessions\/([\w-]+)\/?$/.exec(path)?.[1];
    if (id === undefined) {
      this.session = null;
      this.stream.update();
    } else if (this.session?.id !== id) {
      const session = new OpenSession(id);
      session.target = target;
      this.session = session;
      await session.load();
      if (this.session === session) this.stream.update();
    } else {
      this.session.target = target;
    }
  }

  private merge(cards: Card[]) {
    const merged = { ...this.cards };
    for (const card of cards) {
      const known = merged[card.id];
      if (known && known.head > card.head) continue;
      merged[card.id] = card;
      const worked = known && ["running", "waiting"].includes(known.status);
      if (worked && !card.parent && !["running", "waiting"].includes(card.status)) {
        notify(card.id, `${card.title || "Untitled"}: ${card.status === "failed" ? "failed" : "done"}`, card.error ?? card.last_answer);
      }
    }
    this.cards = merged;
  }

  private frame({ event, data }: Frame) {
    switch (event) {
      case "hello":
        if (this.boot && data.boot !== this.boot) this.restarted = data.boot;
        this.boot = data.boot;
        this.questions = data.questions;
        if (this.session?.error) void this.reload();
        break;
      case "card":
        this.merge([data]);
        break;
      case "questions":
        for (const one of data.questions as Question[]) {
          if (!this.questions.some((known) => known.digest === one.digest)) {
            notify(one.session, `${one.title || "Untitled"} needs you`, `${one.tool ?? "continue"} ${headline(one.input)}`);
          }
        }
        this.questions = [...this.questions.filter((one) => one.session !== data.session), ...data.questions];
        break;
      case "erased": {
        const { [data.session]: _, ...rest } = this.cards;
        this.cards = rest;
        this.questions = this.questions.filter((one) => one.session !== data.session);
        if (this.session?.id === data.session) this.navigate("/");
        break;
      }
      case "item":
        if (this.session?.id === data.session) this.session!.transcript.take(data);
        break;
      case "beat":
        this.presence = data.presence;
        break;
      case "reset":
        if (this.session?.id === data.session) void this.reload();
        break;
      default:
        break;
    }
  }

  private async reload() {
    const { session } = this;
    await session?.load();
    if (session?.loaded && this.session === session) this.stream.update();
  }

  /** A question is shown once, although every session above a subagent has it. */
  get inbox(): Question[] {
    const seen = new Map<string, Question>();
    for (const one of this.questions) {
      const key = `${one.asker}/${one.id}`;
      const known = seen.get(key);
      if (!known || (known.session !== known.asker && one.session === one.asker)) seen.set(key, one);
    }
    return [...seen.values()];
  }
}

export const app = new App();
