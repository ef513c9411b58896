// What the daemon sends; see docs/protocols/console.md.

export interface Usage {
  input: number;
  output: number;
  cached: number;
  thought: number;
  total: number;
  estimated: boolean;
}

export type Status =
  | "running" | "idle" | "waiting" | "completed" | "failed" | "cancelled";

export interface Card {
  id: string;
  created: number;
  updated: number;
  status: Status;
  title: string;
  workspace: string;
  model: string | null;
  head: number;
  last_prompt: string;
  last_answer: string;
  messages: number;
  usage: Usage;
  context: number;
  error: string | null;
  parent: string | null;
  forked: { parent: string; at: number } | null;
}

export interface Assessment {
  risk: "low" | "medium" | "high" | "critical";
  reasons: string[];
  reversible: boolean;
  preview: string;
  similar: string | null;
}

export interface Question {
  id: string;
  session: string;
  asker: string;
  title: string;
  workspace: string;
  tool: string | null;
  input: unknown;
  assessment: Assessment;
  digest: string;
  expires: number | null;
  /** True for a question of a running call, which `input` holds. */
  form: boolean;
}

export interface Model {
  id: string;
  label: string;
  usable: boolean;
  window: number | null;
  tools: boolean;
  images: boolean;
}

export interface Start {
  sessions: Card[];
  next: string | null;
  default_model: string;
  boot: number;
  version: string;
  storage: string | null;
  reads_pictures: boolean;
  transcribes: boolean;
  speaks: boolean;
  runs: Run[];
}

export interface Turn {
  id: string;
  begins: number;
  status: string;
  started: number | null;
  completed: number | null;
  verified: boolean | null;
  undone: boolean;
  changed: boolean;
}

export interface SessionInfo {
  card: Card;
  model: string;
  window: number;
  turns: Turn[];
  queue: string[];
}

export interface Hit {
  session: string;
  title: string;
  workspace: string;
  seq: number;
  at: number;
  excerpt: string[];
}

export interface Changes {
  files: { path: string; change: string }[];
  diff: string;
  unrecorded: { path: string; paths: number | null; reason: string }[];
  undone: boolean;
}

export interface PromptPart {
  kind: string;
  title: string;
  text: string;
  tokens: number;
  exact: boolean;
}

export interface Prompt {
  model: string;
  window: number;
  may_call: boolean;
  sampling: Record<string, unknown>;
  tokens: { system: number; tools: number; messages: number; total: number };
  estimated: boolean;
  parts: PromptPart[];
}

/** One event of a session. Fields beyond these depend on the type. */
export interface Item {
  type: string;
  seq: number;
  position: string;
  at: number;
  session?: string;
  turn?: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  [field: string]: any;
}

export interface HistoryPage {
  events: Item[];
  first: number;
  position: string;
}

/** Sums over model calls. Costs are millionths of a US dollar, or null if no price is known. */
export interface UsageSum {
  calls: number;
  failed: number;
  retries: number;
  usage: Usage;
  cost: number | null;
  unpriced: number;
  median_ms: number | null;
  p95_ms: number | null;
  tokens_per_second: number | null;
}

export interface UsageOverall {
  steps: UsageSum[];
  models: (UsageSum & { model: string })[];
  whole: UsageSum;
  sessions: number;
}

export interface ModelCall {
  seq: number;
  at: number;
  model: string;
  purpose: "answer" | "summary" | "review";
  usage: Usage;
  cost: number | null;
  took_ms: number | null;
  retries: number;
  failed: boolean;
}

export interface SessionUsage {
  calls: ModelCall[];
  left_out: number;
}

export type OverheadPart = "asked" | "first_text" | "tool_round_trip" | "total";

/** What the daemon added to recent turns, oldest first. */
export interface RecentOverhead {
  turns: { at: number; asked_ms: number; first_text_ms: number | null; tool_round_trip_ms: number | null; total_ms: number; models_and_tools_ms: number }[];
  /** A part that no turn had is left out. */
  parts: Partial<Record<OverheadPart, { median_ms: number; p95_ms: number }>>;
  /** The daemon's part of the time, from 0 to 1. */
  share: number | null;
}

export interface PlotSeries {
  name: string;
  colour: "accent" | "good" | "warn" | "bad";
  values: (number | null)[];
}

export interface Finding {
  about: string;
  severity: "ok" | "warning" | "error";
  message: string;
  remedy: string | null;
}

export interface ToolServer {
  name: string;
  workspace: string | null;
  session: string | null;
  definition: string;
  digest: string;
  state: "not_allowed" | "not_started" | "starting" | "ready" | "failed" | "stopped";
  reason: string | null;
  tools: { name: string; description: string }[];
  problems: string[];
}

/** The text on a picture, in pixels of the picture. */
export interface PictureText {
  width: number;
  height: number;
  lines: { text: string; confidence: number; x: number; y: number; width: number; height: number }[];
}

/** A session with the subagents and forks below it. */
export interface FamilyNode {
  id: string;
  title: string;
  status: Status;
  tokens: number;
  created: number;
  forked_at: number | null;
  compactions: Compaction[];
  below: FamilyNode[];
}

/** A summary that stands for the messages before it. */
export interface Compaction {
  seq: number;
  at: number;
  messages: number;
  tokens_before: number;
  tokens_after: number | null;
}

/** A task for a worker of the fleet. Times are microseconds since 1970. */
export interface Run {
  id: string;
  workspace: string;
  task: string;
  status: string;
  active: boolean;
  mode: string;
  worker: string | null;
  losses: number;
  heartbeat: number | null;
  updated: number;
}
