// Markdown as a tree of plain nodes. Nothing here becomes HTML: the view makes elements of known kinds
// and text of everything else. Blocks that are complete are never parsed again.

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis" | "strike"; children: Inline[] }
  | { kind: "link"; href: string; children: Inline[] }
  | { kind: "break" };

export type Block =
  | { kind: "paragraph"; children: Inline[] }
  | { kind: "heading"; level: number; children: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; children: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

const DEPTH_LIMIT = 6;
const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])( +|$)/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+|$)(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:_\s*){3,}|(?:\*\s*){3,})$/;
const TABLE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** A text that grows at its end. Blocks before the last blank line outside a fence never change. */
export class Growing {
  private settled: Block[] = [];
  private settledEnd = 0;
  private text = "";

  update(text: string): Block[] {
    if (!text.startsWith(this.text)) {
      this.settled = [];
      this.settledEnd = 0;
    }
    this.text = text;
    const cut = lastBoundary(text, this.settledEnd);
    if (cut > this.settledEnd) {
      this.settled = this.settled.concat(parse(text.slice(this.settledEnd, cut)));
      this.settledEnd = cut;
    }
    return this.settled.concat(parse(text.slice(cut)));
  }
}

/** The last place, not before `from`, at which a new block surely begins. */
function lastBoundary(text: string, from: number): number {
  let boundary = from;
  let fence = "";
  let at = from;
  let blank = false;
  while (at < text.length) {
    const end = text.indexOf("\n", at);
    if (end < 0) break;
    const line = text.slice(at, end);
    const mark = FENCE.exec(line)?.[1];
    if (!fence && blank && /^\S/.test(line) && !ITEM.test(line)) boundary = at;
    if (fence) {
      if (line.trim().startsWith(fence) && line.trim().replaceAll(fence[0]!, "") === "") fence = "";
    } else if (mark) {
      fence = mark;
    }
    blank = line.trim() === "";
    at = end + 1;
  }
  return boundary;
}

export function parse(text: string, depth = 0): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (line.trim() === "") {
      at++;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      const body: string[] = [];
      const mark = fence[1]!;
      at++;
      while (at < lines.length && !isFenceEnd(lines[at]!, mark)) body.push(lines[at++]!);
      at++;
      blocks.push({ kind: "code", language: fence[2] ?? "", text: body.join("\n") });
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      blocks.push({ kind: "heading", level: heading[1]!.length, children: inline(heading[2]!) });
      at++;
      continue;
    }
    if (RULE.test(line)) {
      blocks.push({ kind: "rule" });
      at++;
      continue;
    }
    if (/^ {0,3}>/.test(line) && depth < DEPTH_LIMIT) {
      const body: string[] = [];
      while (at < lines.length && /^ {0,3}>/.test(lines[at]!)) body.push(lines[at++]!.replace(/^ {0,3}> ?/, ""));
      blocks.push({ kind: "quote", children: parse(body.join("\n"), depth + 1) });
      continue;
    }
    if (ITEM.test(line) && depth < DEPTH_LIMIT) {
      at = list(lines, at, depth, blocks);
      continue;
    }
    if (line.includes("|") && TABLE.test(lines[at + 1] ?? "")) {
      const head = cells(line);
      const rows: Inline[][][] = [];
      at += 2;
      while (at < lines.length && lines[at]!.includes("|")) rows.push(cells(lines[at++]!));
      blocks.push({ kind: "table", head, rows });
      continue;
    }
    const body: string[] = [line];
    at++;
    while (at < lines.length && !beginsBlock(lines[at]!)) body.push(lines[at++]!);
    blocks.push({ kind: "paragraph", children: inline(body.map((one) => one.replace(/^ +/, "")).join("\n")) });
  }
  return blocks;
}

function isFenceEnd(line: string, mark: string): boolean {
  const bare = line.trim();
  return bare.length >= mark.length && bare.replaceAll(mark[0]!, "") === "";
}

function beginsBlock(line: string): boolean {
  return line.trim() === "" || FENCE.test(line) || HEADING.test(line) || /^ {0,3}>/.test(line) ||
    ITEM.test(line) || RULE.test(line);
}

function list(lines: string[], from: number, depth: number, blocks: Block[]): number {
  let at = from;
  const first = ITEM.exec(lines[at]!)!;
  const ordered = /\d/.test(first[2]!);
  const items: Block[][] = [];
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]!);
    if (!item || /\d/.test(item[2]!) !== ordered || RULE.test(lines[at]!)) break;
    const indent = item[0].length || 2;
    const body = [lines[at]!.slice(item[0].length)];
    at++;
    while (at < lines.length) {
      const line = lines[at]!;
      if (line.trim() === "") {
        if (!/^ {2,}\S/.test(lines[at + 1] ?? "")) break;
        body.push("");
      } else if (/^ {2,}/.test(line)) {
        body.push(line.slice(Math.min(indent, line.length - line.trimStart().length)));
      } else if (beginsBlock(line)) {
        break;
      } else {
        body.push(line);
      }
      at++;
    }
    items.push(parse(body.join("\n"), depth + 1));
    let next = at;
    while (lines[next]?.trim() === "") next++;
    if (next > at && ITEM.test(lines[next] ?? "")) at = next;
  }
  blocks.push({ kind: "list", ordered, start: ordered ? parseInt(first[2]!, 10) : 1, items });
  return at;
}

function cells(line: string): Inline[][] {
  const bare = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return bare.split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replaceAll("\\|", "|")));
}

/** Links lead to the web or to a mail program, and nowhere else. */
export function safeHref(href: string): string | undefined {
  try {
    const url = new URL(href.trim());
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export function inline(text: string, depth = 0): Inline[] {
  const out: Inline[] = [];
  let plain = "";
  const flush = () => {
    if (plain) out.push({ kind: "text", text: plain });
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at, at + 4000);
    const letter = rest[0]!;
    let found: RegExpExecArray | null;
    if (letter === "\\" && (found = /^\\([\\`*_{}[\]()#+\-.!|~<>])/.exec(rest))) {
      plain += found[1];
    } else if (letter === "`" && (found = /^(`+)([^]*?[^`])\1(?!`)/.exec(rest))) {
      flush();
      out.push({ kind: "code", text: found[2]!.replace(/^ (.*) $/, "$1") });
    } else if (letter === "\n") {
      found = /^\n/.exec(rest);
      if (plain.endsWith("  ")) {
        flush();
        out.push({ kind: "break" });
      } else {
        plain += "\n";
      }
    } else if (depth < DEPTH_LIMIT && (letter === "*" || letter === "_") &&
      (found = /^(\*\*|__)(?=\S)([^]*?\S)\1/.exec(rest))) {
      flush();
      out.push({ kind: "strong", children: inline(found[2]!, depth + 1) });
    } else if (depth < DEPTH_LIMIT && (letter === "*" || (letter === "_" && !/\w$/.test(plain))) &&
      (found = /^([*_])(?=\S)([^*_]*?\S)\1(?!\w)/.exec(rest))) {
      flush();
      out.push({ kind: "emphasis", children: inline(found[2]!, depth + 1) });
    } else if (depth < DEPTH_LIMIT && letter === "~" && (found = /^~~(?=\S)([^]*?\S)~~/.exec(rest))) {
      flush();
      out.push({ kind: "strike", children: inline(found[1]!, depth + 1) });
    } else if (depth < DEPTH_LIMIT && letter === "[" &&
      (found = /^\[([^\]]*)\]\(\s*<?([^)\s>]*)>?(?:\s+"[^"]*")?\s*\)/.exec(rest))) {
      flush();
      const href = safeHref(found[2]!);
      const children = inline(found[1]!, depth + 1);
      if (href) out.push({ kind: "link", href, children });
      else out.push(...children);
    } else if (letter === "h" && !/\w$/.test(plain) && (found = /^https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?]/.exec(rest))) {
      flush();
      const href = safeHref(found[0]);
      if (href) out.push({ kind: "link", href, children: [{ kind: "text", text: found[0] }] });
      else plain += found[0];
    } else {
      found = null;
      plain += letter;
    }
    at += found ? found[0].length : 1;
  }
  flush();
  return out;
}
