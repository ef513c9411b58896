// The events of a session, folded into the entries of the transcript. Events are kept, so that an older page can
// be put before them; text that grows changes only one entry.

import type { Assessment, Item, Usage } from "./types";

const OUTPUT_LIMIT = 64 * 1024;

export class MessageEntry {
  readonly kind = "message";
  queued = $state(false);
  withdrawn = $state(false);
  constructor(readonly key: string, readonly item: Item) {
    this.queued = item.queued;
  }
}

export class TextEntry {
  readonly kind = "text";
  text = $state("");
  note = $state("");
  done = $state(false);
  constructor(readonly key: string, readonly item: Item) {
    this.text = item.text;
  }
  get thought() {
    return this.item.channel === "thought";
  }
}

export type CallState = "requested" | "asked" | "running" | "done";

export interface Subagent {
  session: string;
  task: string;
  status: string;
  done: boolean;
}

export class CallEntry {
  readonly kind = "call";
  state = $state<CallState>("requested");
  input = $state.raw<unknown>(undefined);
  output = $state("");
  ending = $state("");
  error = $state<string | null>(null);
  answer = $state("");
  assessment = $state.raw<Assessment | null>(null);
  files = $state.raw<string[]>([]);
  leftOut = $state(0);
  artifacts = $state.raw<{ name: string; mime: string }[]>([]);
  subagent = $state.raw<Subagent | null>(null);
  review = $state("");
  started = $state(0);
  ended = $state(0);
  constructor(readonly key: string, readonly item: Item, readonly tool: string, readonly verifies: boolean) {}
}

export class NoticeEntry {
  readonly kind = "notice";
  constructor(
    readonly key: string,
    readonly item: Item,
    readonly tone: "info" | "warning" | "error",
    readonly text: string,
    readonly detail = "",
  ) {}
}

export class EndEntry {
  readonly kind = "end";
  undone = $state(false);
  undoError = $state("");
  superseded = $state(false);
  constructor(
    readonly key: string,
    readonly item: Item,
    readonly status: "completed" | "failed" | "cancelled",
    readonly usage: Usage,
    readonly changed: boolean,
    readonly began: number,
    readonly spans: Span[],
  ) {}
}

/** A stretch of a turn: a model call, a tool or waiting for a person. */
export interface Span {
  kind: "model" | "tool" | "waiting";
  name: string;
  from: number;
  to: number;
}

export type Entry = MessageEntry | TextEntry | CallEntry | NoticeEntry | EndEntry;

interface OpenTurn {
  began: number;
  changed: boolean;
  spans: Span[];
  asked: Map<string, number>;
  step?: { at: number; model: string };
}

export class Transcript {
  entries = $state.raw<Entry[]>([]);
  /** The model calls, each with the number of the event that started it. */
  steps = $state.raw<{ seq: number; model: string; at: number }[]>([]);
  first = $state(1);
  running = $state(false);
  position = "0";
  private events: Item[] = [];
  /** The last event that is not text, and where the text of each step ends. */
  private last = 0;
  private written = new Map<string, number>();
  private calls = new Map<string, CallEntry>();
  private messages = new Map<string, MessageEntry>();
  private ends = new Map<string, EndEntry>();
  private turns = new Map<string, OpenTurn>();
  private text: TextEntry | undefined;
  private pending: Entry[] | undefined;

  load(events: Item[], first: number, position: string) {
    this.events = [];
    this.first = first;
    this.fold(events);
    this.position = position;
  }

  prepend(events: Item[], first: number) {
    const newer = this.events;
    this.first = first;
    this.events = [];
    this.fold([...events, ...newer]);
  }

  private fold(events: Item[]) {
    const position = this.position;
    this.last = 0;
    this.written.clear();
    this.calls.clear();
    this.messages.clear();
    this.ends.clear();
    this.turns.clear();
    this.text = undefined;
    this.steps = [];
    this.running = false;
    this.pending = [];
    for (const event of events) this.take(event);
    this.entries = this.pending;
    this.pending = undefined;
    this.position = position;
  }

  take(item: Item) {
    if (this.has(item)) return;
    if (item.position) this.position = item.position;
    if (item.type !== "progress") this.keep(item);
    this.apply(item);
  }

  /** True for an item that was taken already: a stream that several tabs share begins at the position of the slowest. */
  private has(item: Item): boolean {
    if (item.type === "progress") return false;
    if (item.type === "text") {
      const end = Number(item.position.split(".")[1] ?? 0);
      if (end <= (this.written.get(item.step) ?? -1)) return true;
      this.written.set(item.step, end);
      return false;
    }
    if (item.seq <= this.last) return true;
    this.last = item.seq;
    return false;
  }

  private keep(item: Item) {
    const last = this.events.at(-1);
    if (item.type === "text" && last?.type === "text" && last.step === item.step && last.channel === item.channel) {
      this.events[this.events.length - 1] = { ...last, text: last.text + item.text, position: item.position };
    } else {
      this.events.push(item);
    }
  }

  private add(entry: Entry) {
    if (this.pending) this.pending.push(entry);
    else this.entries = [...this.entries, entry];
  }

  private notice(item: Item, tone: "info" | "warning" | "error", text: string, detail = "") {
    this.add(new NoticeEntry(`n${item.seq}`, item, tone, text, detail));
  }

  private turn(item: Item): OpenTurn {
    const id = item.turn ?? "";
    let turn = this.turns.get(id);
    if (!turn) {
      turn = { began: item.at, changed: false, spans: [], asked: new Map() };
      this.turns.set(id, turn);
    }
    return turn;
  }

  private call(item: Item, verifies = false): CallEntry {
    let call = this.calls.get(item.call);
    if (!call) {
      call = new CallEntry(`c${item.call}`, item, item.tool ?? "", verifies);
      this.calls.set(item.call, call);
      this.add(call);
    }
    if (item.input !== undefined) call.input = item.input;
    return call;
  }

  private endStep(item: Item) {
    const turn = this.turn(item);
    if (turn.step) {
      turn.spans.push({ kind: "model", name: turn.step.model, from: turn.step.at, to: item.at });
      turn.step = undefined;
    }
    if (this.text) this.text.done = true;
    this.text = undefined;
  }

  private apply(item: Item) {
    switch (item.type) {
      case "message": {
        const entry = new MessageEntry(`m${item.message}`, item);
        this.messages.set(item.turn ?? "", entry);
        this.add(entry);
        break;
      }
      case "turn_started": {
        this.running = true;
        const message = this.messages.get(item.turn ?? "");
        if (message) message.queued = false;
        const before = this.ends.get(item.turn ?? "");
        if (before) before.superseded = true;
        this.turns.delete(item.turn ?? "");
        this.turn(item);
        if (item.attempt > 1) this.notice(item, "info", `Attempt ${item.attempt}`);
        break;
      }
      case "step":
        this.running = true;
        this.text = undefined;
        this.steps = [...this.steps, { seq: item.seq, model: item.model, at: item.at }];
        this.turn(item).step = { at: item.at, model: item.model };
        break;
      case "text":
        if (this.text && this.text.item.step === item.step && this.text.item.channel === item.channel) {
          this.text.text += item.text;
        } else {
          if (this.text) this.text.done = true;
          this.text = new TextEntry(`t${item.step}.${item.offset}`, item);
          this.add(this.text);
        }
        break;
      case "retrying":
        this.notice(item, "warning", `The model did not answer; retrying in ${Math.round(item.wait_ms / 1000)} s (attempt ${item.attempt})`, item.reason);
        break;
      case "answer":
        this.endStep(item);
        for (const call of item.calls) this.call({ ...item, ...call });
        if (item.by) this.notice(item, "info", `Answered by ${item.by}`);
        break;
      case "interrupted":
        if (this.text) this.text.note = "cut off";
        this.endStep(item);
        this.notice(item, "warning", "The answer was cut off", item.reason);
        break;
      case "verification":
        this.call(item, true);
        break;
      case "review":
        this.call(item).review = "A model is reviewing this change";
        break;
      case "reviewed":
        this.call(item).review = `Review: ${item.answer ?? "not possible"}. ${item.comment}`;
        break;
      case "question": {
        const call = this.call(item);
        call.state = "asked";
        call.assessment = item.assessment;
        this.turn(item).asked.set(item.call, item.at);
        break;
      }
      case "answered": {
        const call = this.call(item);
        const by = { client: "", clock: " by timeout", memory: " by an earlier answer" }[item.by as string] ?? "";
        call.answer = `${item.answer === "approve" ? "approved" : "denied"}${by}${item.reason ? `: ${item.reason}` : ""}`;
        call.state = "requested";
        const asked = this.turn(item).asked.get(item.call);
        if (asked) this.turn(item).spans.push({ kind: "waiting", name: "waiting for a person", from: asked, to: item.at });
        break;
      }
      case "user_question":
        this.turn(item).asked.set(item.question, item.at);
        break;
      case "user_answer": {
        const call = this.call(item);
        call.answer = item.answer === "accepted" ? "question answered" : `question ${item.answer}`;
        const asked = this.turn(item).asked.get(item.question);
        if (asked) this.turn(item).spans.push({ kind: "waiting", name: "waiting for a person", from: asked, to: item.at });
        break;
      }
      case "call": {
        const call = this.call(item);
        call.state = "running";
        call.started = item.at;
        call.output = "";
        break;
      }
      case "progress": {
        const call = this.calls.get(item.call);
        if (call && call.state !== "done") call.output = (call.output + item.text).slice(-OUTPUT_LIMIT);
        break;
      }
      case "result": {
        const call = this.call(item);
        call.state = "done";
        call.ending = item.ending;
        call.output = item.text;
        call.leftOut = item.left_out;
        call.artifacts = item.artifacts;
        call.error = item.error;
        call.files = item.files;
        call.ended = item.at;
        const turn = this.turn(item);
        if (item.files.length > 0) turn.changed = true;
        if (call.started) turn.spans.push({ kind: "tool", name: call.tool, from: call.started, to: item.at });
        break;
      }
      case "subagent": {
        const call = this.call(item);
        const { news } = item;
        const known = call.subagent ?? { session: item.subagent, task: "", status: "", done: false };
        if (news.type === "spawned") call.subagent = { ...known, task: news.task, status: "started" };
        else if (news.type === "progressed") call.subagent = { ...known, status: news.status };
        else if (news.type === "asked") call.subagent = { ...known, status: "waiting for an answer" };
        else if (news.type === "settled") call.subagent = { ...known, status: "working" };
        else call.subagent = { ...known, status: news.ok ? "done" : "failed", done: true };
        break;
      }
      case "stopping":
        this.notice(item, "info", "Stopping", item.reason ?? "");
        break;
      case "resumed":
        this.running = true;
        this.notice(item, "warning", `The daemon restarted and the turn continued after ${(item.after_ms / 1000).toFixed(1)} s`);
        break;
      case "held":
        this.notice(item, "warning", "The daemon restarted; the turn is waiting for your decision", item.reason);
        break;
      case "released":
        this.notice(item, "info", "The turn continues");
        break;
      case "completed":
      case "failed":
      case "cancelled":
        this.end(item, item.type);
        break;
      case "undone": {
        const end = this.ends.get(item.turn ?? "");
        if (end) {
          end.undone = true;
          end.undoError = "";
        }
        this.notice(item, "info", `Changes undone: ${item.files.join(", ")}`);
        break;
      }
      case "redone": {
        const end = this.ends.get(item.turn ?? "");
        if (end) end.undone = false;
        break;
      }
      case "undo_failed": {
        const end = this.ends.get(item.turn ?? "");
        if (end) end.undoError = item.reason;
        break;
      }
      case "compacting":
        this.notice(item, "info", `Summarizing the conversation (${item.tokens} tokens)`);
        break;
      case "compacted":
        this.notice(item, "info", `Older messages were summarized: ${item.before} tokens before${item.after === null ? "" : `, ${item.after} after`}`, item.summary);
        break;
      case "compaction_failed":
        this.notice(item, "warning", "The conversation could not be summarized", item.reason);
        break;
      case "forked":
        this.notice(item, "info", `Forked at event ${item.from}`);
        this.running = false;
        break;
      case "superseded":
        this.removeFrom(item.turn ?? "");
        this.notice(item, "info", "Later messages were removed and replaced");
        break;
      case "model":
        this.notice(item, "info", `Model: ${item.model}`);
        break;
      case "memory_saved":
        this.notice(item, "info", `Saved to memory: ${item.path}`);
        break;
      case "claim_lost":
        this.notice(item, "warning", `The client ${item.by}, which runs this call, disconnected`);
        break;
      case "closed":
        this.notice(item, "info", "The session was closed", item.reason ?? "");
        break;
      default:
        break;
    }
  }

  /** Removes a turn and all that came after it; everything, if the turn began before the oldest event here. */
  private removeFrom(turn: string) {
    const message = this.messages.get(turn);
    const entries = this.pending ?? this.entries;
    const kept = entries.slice(0, message ? entries.indexOf(message) : 0);
    if (this.pending) this.pending = kept;
    else this.entries = kept;
    this.text = undefined;
  }

  private end(item: Item, status: "completed" | "failed" | "cancelled") {
    this.endStep(item);
    this.running = false;
    const turn = this.turn(item);
    const message = this.messages.get(item.turn ?? "");
    if (message?.queued) {
      message.queued = false;
      message.withdrawn = true;
    }
    for (const call of this.calls.values()) {
      if (call.state !== "done" && call.item.turn === item.turn) call.state = "done";
    }
    const entry = new EndEntry(`e${item.seq}`, item, status, item.usage, turn.changed, turn.began, turn.spans);
    this.ends.set(item.turn ?? "", entry);
    this.add(entry);
  }
}
