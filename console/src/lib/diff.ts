// Unified diffs, cut into files and lines.

export interface DiffLine {
  kind: "hunk" | "add" | "remove" | "same" | "note";
  text: string;
  /** The numbers of the line before and after the change. */
  old?: number;
  fresh?: number;
}

export interface DiffFile {
  path: string;
  added: number;
  removed: number;
  lines: DiffLine[];
}

export function isDiff(text: string): boolean {
  return /^(diff --git |--- )/m.test(text) && /^@@ /m.test(text);
}

export function parseDiff(text: string): DiffFile[] {
  const files: DiffFile[] = [];
  let file: DiffFile | undefined;
  /** Lines of the hunk that are still to come: only these count as content, whatever they look like. */
  let [old, fresh] = [0, 0];
  /** The numbers of the next lines. */
  let [oldLine, freshLine] = [0, 0];
  let from = "";
  const begin = (path: string) => {
    file = { path, added: 0, removed: 0, lines: [] };
    files.push(file);
    [old, fresh] = [0, 0];
  };
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  lines.forEach((line, at) => {
    if (file && (old > 0 || fresh > 0)) {
      if (line.startsWith("+")) {
        fresh--;
        file.added++;
        file.lines.push({ kind: "add", text: line, fresh: freshLine++ });
      } else if (line.startsWith("-")) {
        old--;
        file.removed++;
        file.lines.push({ kind: "remove", text: line, old: oldLine++ });
      } else if (line.startsWith("\\")) {
        file.lines.push({ kind: "note", text: line });
      } else {
        old--;
        fresh--;
        file.lines.push({ kind: "same", text: line, old: oldLine++, fresh: freshLine++ });
      }
    } else if (line.startsWith("diff --git ")) {
      begin(/ "?b\/(.*?)"?$/.exec(line)?.[1] ?? line.slice(11));
    } else if (line.startsWith("--- ") && lines[at + 1]?.startsWith("+++ ")) {
      from = clean(line.slice(4));
    } else if (line.startsWith("+++ ") && lines[at - 1]?.startsWith("--- ")) {
      const to = clean(line.slice(4));
      const path = to === "/dev/null" ? from : to;
      if (!file || file.lines.some((known) => known.kind === "hunk") || file.path !== path) begin(path);
    } else if (line.startsWith("@@")) {
      if (!file) begin("changes");
      const counts = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
      [old, fresh] = counts ? [Number(counts[2] ?? 1), Number(counts[4] ?? 1)] : [0, 0];
      [oldLine, freshLine] = counts ? [Number(counts[1]), Number(counts[3])] : [0, 0];
      file!.lines.push({ kind: "hunk", text: line });
    } else {
      if (!file) begin("changes");
      file!.lines.push({ kind: "note", text: line });
    }
  });
  return files;
}

function clean(path: string): string {
  return path.replace(/\t.*$/, "").replace(/^"|"$/g, "").replace(/^[ab]\//, "");
}
