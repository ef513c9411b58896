// Formats numbers, times and texts for people.

export function ago(micros: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - micros / 1000) / 1000));
  if (seconds < 60) return "now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

export function clock(micros: number): string {
  return new Date(micros / 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

export function duration(ms: number): string {
  if (ms > 0 && ms < 1) return `${Number(ms.toPrecision(2))} ms`;
  if (ms > 0 && ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** Millionths of a US dollar, with two significant digits if it is little. */
export function dollars(micros: number | null): string {
  if (micros === null) return "unknown";
  const value = micros / 1e6;
  return `$${value === 0 || value >= 0.1 ? value.toFixed(2) : value.toPrecision(2).replace(/0+$/, "")}`;
}

export function folder(path: string): string {
  return path.split("/").filter(Boolean).at(-1) ?? path;
}

/** A line of markdown as plain words. */
export function plain(text: string): string {
  return text.replace(/^[#>\s-]+|[*`]+/g, "").trim();
}

export function json(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** The most important argument of a call, in one line. */
export function headline(input: unknown): string {
  if (typeof input !== "object" || input === null) return String(input ?? "");
  const fields = input as Record<string, unknown>;
  for (const name of ["command", "path", "file_path", "pattern", "query", "url", "task", "prompt"]) {
    if (typeof fields[name] === "string") return (fields[name] as string).split("\n")[0]!;
    if (Array.isArray(fields[name])) return (fields[name] as unknown[]).join(" ");
  }
  const text = JSON.stringify(fields);
  return text === "{}" ? "" : text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

/** The output and exit code of a command, if the result of a call is that of a command. */
export function printed(output: string): { text: string; exit: number | null } | null {
  if (!output.startsWith("{")) return null;
  try {
    const record = JSON.parse(output) as Record<string, unknown>;
    if (typeof record["stdout"] !== "string") return null;
    const parts = [record["stdout"], record["stderr"]].filter((part) => typeof part === "string" && part !== "");
    const exit = record["exit_code"];
    return { text: parts.join("\n"), exit: typeof exit === "number" ? exit : null };
  } catch {
    return null;
  }
}

/** Text with escapes for characters that are invisible or change the order of others. */
export function visible(text: string): string {
  return text.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
