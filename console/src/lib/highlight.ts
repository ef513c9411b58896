// Colours for code, by a few rules that hold in most languages: comments, strings, numbers, keywords.

export interface Token {
  kind: "plain" | "comment" | "string" | "number" | "keyword";
  text: string;
}

const KEYWORDS = new Set(
  ("abstract and as async await bool boolean break case catch char class const continue crate def default defer del do done " +
    "double elif else end enum esac except export extends extern false fi final finally float fn for from func function go " +
    "if impl implements import in include int interface is lambda let long loop match mod module move mut namespace new nil " +
    "none None not null of or package pass private protected pub public raise ref return self Self short sizeof static " +
    "struct super switch then this throw trait true True False try type typeof union unsafe unsigned use using var void " +
    "where while with yield").split(" "),
);

const TOKEN =
  /(\/\/.*|#(?![\w!]*[\])]).*|--\s.*|\/\*[^]*?(?:\*\/|$)|<!--[^]*?(?:-->|$))|("(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)/g;

/** Longer code is shown without colours. */
const LIMIT = 20_000;

export function highlight(code: string): Token[] {
  if (code.length > LIMIT) return [{ kind: "plain", text: code }];
  const tokens: Token[] = [];
  let plain = "";
  let end = 0;
  const flush = () => {
    if (plain) tokens.push({ kind: "plain", text: plain });
    plain = "";
  };
  for (const found of code.matchAll(TOKEN)) {
    plain += code.slice(end, found.index);
    const [text, comment, string, number, word] = found;
    const kind = comment ? "comment" : string ? "string" : number ? "number" : word && KEYWORDS.has(word) ? "keyword" : "plain";
    if (kind === "plain") {
      plain += text;
    } else {
      flush();
      tokens.push({ kind, text });
    }
    end = found.index + text.length;
  }
  plain += code.slice(end);
  flush();
  return tokens;
}
