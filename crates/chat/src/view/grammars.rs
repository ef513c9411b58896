//! The languages with highlighting.

use super::palette::TextRole;

/// The lexical rules of a language.
#[derive(Debug)]
pub(super) struct Grammar {
    names: &'static [&'static str],
    /// Separated by spaces.
    pub(super) keywords: &'static str,
    /// Prefixes of a comment up to the end of the line.
    pub(super) comments: &'static [&'static str],
    /// Tokens of several lines: begin, end and role.
    pub(super) spans: &'static [(&'static str, &'static str, TextRole)],
    pub(super) quotes: &'static str,
    /// True if single quotes enclose a character and not a string.
    pub(super) letters: bool,
    /// True if a dollar sign begins a variable.
    pub(super) dollars: bool,
    /// The separator of key and value, in configuration languages.
    pub(super) sets: Option<char>,
}

/// The grammar of a language, if it is known.
pub(super) fn grammar(language: &str) -> Option<&'static Grammar> {
    GRAMMARS.iter().find(|grammar| grammar.names.contains(&language))
}

const PLAIN: Grammar = Grammar {
    names: &[],
    keywords: "",
    comments: &[],
    spans: &[],
    quotes: "\"'",
    letters: false,
    dollars: false,
    sets: None,
};

const SLASHES: &[(&str, &str, TextRole)] = &[("/*", "*/", TextRole::Comment)];
const TRIPLE: &[(&str, &str, TextRole)] =
    &[("\"\"\"", "\"\"\"", TextRole::Text), ("'''", "'''", TextRole::Text)];

static GRAMMARS: [Grammar; 14] = [
    Grammar {
        names: &["rust", "rs"],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in \
                   let loop match mod move mut pub ref return self Self static struct super trait true \
                   type unsafe use where while",
        comments: &["//"],
        spans: SLASHES,
        quotes: "\"",
        letters: true,
        ..PLAIN
    },
    Grammar {
        names: &["python", "py", "python3"],
        keywords: "and as assert async await break case class continue def del elif else except False \
                   finally for from global if import in is lambda match None nonlocal not or pass raise \
                   return self True try while with yield",
        comments: &["#"],
        spans: TRIPLE,
        ..PLAIN
    },
    Grammar {
        names: &["javascript", "js", "jsx", "mjs", "typescript", "ts", "tsx"],
        keywords: "abstract any as async await boolean break case catch class const continue declare \
                   default delete do else enum export extends false finally for from function if \
                   implements import in instanceof interface let new null number of private protected \
                   public readonly return static string super switch this throw true try type typeof \
                   undefined var void while yield",
        comments: &["//"],
        spans: &[("/*", "*/", TextRole::Comment), ("`", "`", TextRole::Text)],
        ..PLAIN
    },
    Grammar {
        names: &["go", "golang"],
        keywords: "break case chan const continue default defer else fallthrough false for func go goto if \
                   import interface map nil package range return select struct switch true type var",
        comments: &["//"],
        spans: &[("/*", "*/", TextRole::Comment), ("`", "`", TextRole::Text)],
        ..PLAIN
    },
    Grammar {
        names: &["c", "h", "cpp", "c++", "cc", "cxx", "hpp"],
        keywords: "auto bool break case catch char class const constexpr continue default delete do double \
                   else enum extern false float for goto if inline int long namespace new nullptr operator \
                   private protected public return short signed sizeof static struct switch template this \
                   throw true try typedef typename union unsigned using virtual void volatile while",
        comments: &["//"],
        spans: SLASHES,
        ..PLAIN
    },
    Grammar {
        names: &["java", "kotlin", "kt", "scala", "swift", "csharp", "cs", "c#", "dart", "php"],
        keywords: "abstract assert async await boolean break byte case catch char class const continue data \
                   def default do double else enum extends false final finally float for foreach fun func \
                   function guard if implements import in instanceof int interface internal is let long \
                   namespace new nil null object override package private protected public return sealed \
                   short static string struct super switch this throw throws true try using val var void \
                   volatile when where while",
        comments: &["//"],
        spans: &[("/*", "*/", TextRole::Comment), ("\"\"\"", "\"\"\"", TextRole::Text)],
        ..PLAIN
    },
    Grammar {
        names: &["bash", "sh", "shell", "zsh", "fish", "console", "dockerfile", "make", "makefile"],
        keywords: "alias case do done elif else esac eval exec exit export fi for function if in local \
                   return set source then trap unset until while cd echo sudo FROM RUN COPY ENV CMD \
                   ENTRYPOINT WORKDIR",
        comments: &["#"],
        dollars: true,
        ..PLAIN
    },
    Grammar {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
        keywords: "true false null",
        comments: &["//"],
        sets: Some(':'),
        ..PLAIN
    },
    Grammar {
        names: &["yaml", "yml"],
        keywords: "true false null yes no",
        comments: &["#"],
        sets: Some(':'),
        ..PLAIN
    },
    Grammar {
        names: &["toml", "ini", "conf", "cfg", "properties", "env"],
        keywords: "true false",
        comments: &["#", ";"],
        spans: TRIPLE,
        sets: Some('='),
        ..PLAIN
    },
    Grammar {
        names: &["sql", "postgresql", "sqlite", "mysql"],
        keywords: "ALTER AND AS ASC BEGIN BY CASE COMMIT CREATE DELETE DESC DISTINCT DROP ELSE END EXISTS \
                   FROM GROUP HAVING IN INDEX INNER INSERT INTO IS JOIN LEFT LIKE LIMIT NOT NULL ON OR \
                   ORDER OUTER PRIMARY KEY SELECT SET TABLE THEN UNION UNIQUE UPDATE VALUES WHEN WHERE WITH \
                   and as asc begin by case create delete desc distinct drop else end exists from group \
                   having in index inner insert into is join left like limit not null on or order select \
                   set table then union update values when where with",
        comments: &["--"],
        spans: SLASHES,
        ..PLAIN
    },
    Grammar {
        names: &["ruby", "rb", "elixir", "ex", "lua", "perl", "pl", "r"],
        keywords: "and begin break class def defmodule defp do else elsif elseif end ensure false fn for \
                   function if in local module my next nil not or raise repeat require rescue return self \
                   sub then true undef unless until use when while yield",
        comments: &["#", "--"],
        ..PLAIN
    },
    Grammar {
        names: &["html", "xml", "svg", "vue", "svelte"],
        spans: &[("<!--", "-->", TextRole::Comment)],
        quotes: "\"",
        sets: Some('='),
        ..PLAIN
    },
    Grammar { names: &["css", "scss", "less"], spans: SLASHES, sets: Some(':'), ..PLAIN },
];
