//! `diagram` draws what can be drawn, and survives what cannot.

use quintet_kernel::port::ToolOutput;
use quintet_kernel::tool::{Ending, Risk};
use serde_json::json;

use crate::bench::{Bench, json as report, text};

const FLOW: &str = "flowchart LR\n  A[Start] -->|go| B{Done?}\n  B -- no --> A\n  \
                    subgraph inner\n    B --> C[(Data)]\n  end\n";
const SEQUENCE: &str = "sequenceDiagram\n  participant U as User\n  U->>+D: ask\n  loop often\n    \
                        D-->>U: piece\n  end\n  alt good\n    D-->>-U: done\n  else\n    \
                        Note over U,D: why\n  end\n";
const CLASS: &str = "classDiagram\n  class Tool {\n    <<interface>>\n    +run(call) Output\n  }\n  \
                     Tool <|.. Shell\n  Shell \"1\" --> \"*\" Runner : uses\n";
const STATE: &str = "stateDiagram-v2\n  [*] --> Idle\n  Idle --> Busy : prompt\n  state Busy {\n    \
                     [*] --> Asking\n  }\n  Busy --> [*]\n";
const ER: &str = "erDiagram\n  CUSTOMER ||--o{ ORDER : places\n  ORDER {\n    int id PK\n  }\n";

fn picture(output: &ToolOutput) -> String {
    assert!(output.outcome.ok(), "{}", text(output));
    let [file] = &output.files[..] else { panic!("{} files", output.files.len()) };
    assert_eq!(file.mime, "image/svg+xml");
    String::from_utf8(file.content.clone()).unwrap()
}

#[tokio::test]
async fn mermaid_becomes_a_picture() {
    let bench = Bench::new();
    for (source, words) in [
        (FLOW, &["Start", "go", "Done?", "inner", "Data"][..]),
        (SEQUENCE, &["User", "ask", "often", "piece", "why"]),
        (CLASS, &["Tool", "interface", "run(call)", "Shell", "uses"]),
        (STATE, &["Idle", "Busy", "prompt", "Asking"]),
        (ER, &["CUSTOMER", "ORDER", "places", "id"]),
        ("pie title Pets\n  \"Dogs\" : 3\n  \"Cats\" : 1\n", &["Pets", "Dogs"]),
        ("mindmap\n  root\n    one\n    two\n", &["root", "two"]),
        (
            "gantt\n  title Plan\n  dateFormat YYYY-MM-DD\n  section Build\n  Walls :a1, \
             2025-01-01, 5d\n  Roof :after a1, 3d\n",
            &["Plan", "Build", "Walls", "Roof"],
        ),
        ("packet-beta\n0-15: \"Source\"\n16-31: \"Target\"\n", &["Source", "Target"]),
        ("block-beta\n  columns 2\n  a[\"One\"] b[\"Two\"]\n", &["One", "Two"]),
        (
            "xychart-beta\n  title \"Sales\"\n  x-axis [jan, feb]\n  y-axis \"Money\" 0 --> 10\n  \
             bar [3, 7]\n",
            &["Sales", "jan", "Money"],
        ),
        (
            "radar-beta\n  title Skills\n  axis a[\"Speed\"], b[\"Care\"], c[\"Wit\"]\n  curve x{1, 2, \
             3}\n",
            &["Skills", "Speed"],
        ),
        ("treemap-beta\n\"Disk\"\n    \"Music\": 10\n    \"Code\": 20\n", &["Music", "Code"]),
        ("zenuml\n  Ann -> Bob.greet()\n", &["Ann", "greet"]),
        ("gitGraph\n  commit id: \"x1\"\n  branch side\n  commit\n", &["x1", "side"]),
    ] {
        let output = bench.run("diagram", json!({ "source": source })).await;
        let picture = picture(&output);
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>"), "{picture}");
        for word in words {
            assert!(picture.contains(word), "{word} is not in {picture}");
        }
        assert_eq!(output.files[0].name, "diagram.svg");
        assert_eq!(text(&output), format!("drew diagram.svg, {} bytes", picture.len()));
    }
    assert!(bench.snapshot().is_empty());
}

#[tokio::test]
async fn it_has_the_name_it_is_given() {
    let bench = Bench::new();
    for (name, file) in [("turn", "turn.svg"), ("a b.svg", "a b.svg"), ("v1.2", "v1.2.svg")] {
        let output = bench.run("diagram", json!({ "source": FLOW, "name": name })).await;
        assert_eq!(output.files[0].name, file);
    }
    for name in ["", ".x", "../x", "a/b", "a\nb", "x".repeat(101).as_str()] {
        let got = bench.tell("diagram", json!({ "source": FLOW, "name": name })).await;
        assert!(got.starts_with("! invalid input: /name: "), "{name}: {got}");
    }
}

#[tokio::test]
async fn a_person_sees_the_source() {
    let bench = Bench::new();
    let shown = bench.assess("diagram", json!({ "source": FLOW })).await;
    assert_eq!((shown.risk, shown.reversible, shown.settled), (Risk::Low, true, None));
    assert_eq!(shown.preview, FLOW);
}

#[tokio::test]
async fn a_bad_source_is_an_error_with_its_line() {
    let bench = Bench::new();
    for (source, why) in [
        ("flowchart TD\n  a[b\n", "line 2"),
        ("sequenceDiagram\n  A->>B: x\n  what is this\n", "line 3"),
        ("nonsense\n", "unknown diagram type: nonsense; there are flowchart, "),
        ("venn-beta\n", ", packet-beta, block-beta and zenuml"),
        ("pie\n\u{0}\n", "U+0000"),
        ("  \n", "empty input"),
    ] {
        let got = bench.tell("diagram", json!({ "source": source })).await;
        assert!(got.starts_with("! ") && got.contains(why), "{source}: {got}");
    }
    let got = bench.tell("diagram", json!({ "source": "x".repeat(40_000) })).await;
    assert!(got.starts_with("! invalid input: /source: this is longer than 32768"), "{got}");
    let got = bench.tell("diagram", json!({ "source": "x", "language": "uml" })).await;
    assert!(got.starts_with("! invalid input: /language: "), "{got}");
}

#[tokio::test]
async fn nothing_gets_out_of_a_picture() {
    let bench = Bench::new();
    let safe = "flowchart TD\n  a[\"<script>alert(1)</script> & <img src=x onerror=y>\"]\n";
    let drawn = picture(&bench.run("diagram", json!({ "source": safe })).await);
    assert!(!drawn.contains("<script") && !drawn.contains("<img"), "{drawn}");
    for line in [
        "click a \"javascript:alert(1)\"",
        "click a href \"https://example.org/\"",
        "style a fill:url(http://example.org/x)",
    ] {
        let source = format!("flowchart TD\n  a[x] --> b\n  {line}\n");
        let got = bench.tell("diagram", json!({ "source": source })).await;
        assert!(got.starts_with("! the picture leads "), "{line}: {got}");
    }
}

#[tokio::test]
async fn ugly_sources_do_no_harm() {
    let bench = Bench::new();
    let nested = |open: &dyn Fn(usize) -> String, close: &str, times: usize| {
        let opened: String = (0..times).map(open).collect();
        format!("{opened}x\n{}", close.repeat(times))
    };
    let deep = nested(&|n| format!("subgraph s{n}\n"), "end\n", 1500);
    let states = nested(&|n| format!("state s{n} {{\n"), "}\n", 1500);
    for source in [
        format!("flowchart TD\n{deep}"),
        format!("stateDiagram-v2\n{states}"),
        format!("flowchart TD\na{}", "[".repeat(32_000)),
        format!("mindmap\n{}", (0..240).map(|n| format!("{}n\n", " ".repeat(n))).collect::<String>()),
        "flowchart TD\n\u{1}\u{0}é[\u{202e}x\u{fffe}]-->é\n".to_owned(),
        "flowchart TD\na-->a\nsubgraph a\na\nend\n".to_owned(),
        "%%{init: {\"theme\": \"x\", \"themeVariables\": {\"lineColor\": \"a'><script>\"}}}%%\npie\n".to_owned(),
        "pie\n\"a\" : 1e308\n\"b\" : 1e308\n".to_owned(),
        "---\ntitle: x\nconfig:\n".to_owned(),
        "gantt\n  section x\n  a :a1, 0001-01-01, 999999999d\n".to_owned(),
        "packet-beta\n0-4294967295: \"x\"\n".to_owned(),
        "block-beta\ncolumns 4294967295\na:4294967295 b\n".to_owned(),
        "xychart-beta\ny-axis 0 --> 1e308\nbar [1e308]\n".to_owned(),
        format!("treemap-beta\n{}", (0..240).map(|n| format!("{}\"n\"\n", " ".repeat(n))).collect::<String>()),
    ] {
        let output = bench.run("diagram", json!({ "source": source })).await;
        let drawn = output.files.iter().map(|file| String::from_utf8_lossy(&file.content));
        assert!(drawn.into_iter().all(|drawn| !drawn.contains("<script")));
    }
    // It still draws.
    picture(&bench.run("diagram", json!({ "source": FLOW })).await);
}

/// A few digits in these mean more than any machine has.
#[tokio::test]
async fn a_picture_without_end_takes_little_memory() {
    let bench = Bench::new();
    let many_days = "gantt\n  tickInterval 1day\n  excludes weekends\n  section x\n";
    for source in [
        format!("{many_days}  a :a1, 2025-01-01, 1000000d\n").as_str(),
        &format!("{many_days}  a :a1, 2025-01-01, 100000000d\n"),
        "packet-beta\n4294967290: \"x\"\n",
        "radar-beta\n  axis a, b, c\n  curve x{1, 2, 3}\n  ticks 4294967295\n",
    ] {
        let got = bench.tell("diagram", json!({ "source": source })).await;
        let is_told = got.starts_with("! the picture is too large: ")
            || got.starts_with("! the diagram cannot be drawn: it takes more than ");
        assert!(is_told, "{source}: {got}");
    }
}

const ENDLESS: &str = "gantt\n  excludes monday, tuesday, wednesday, thursday, friday, saturday, \
                       sunday\n  section x\n  a :a1, 2025-01-01, 5d\n";

#[tokio::test]
async fn a_drawing_without_end_is_ended() {
    let bench = Bench::new();
    let packet = "packet-beta\n0-4294967290: \"x\"\n";
    let [days, bits] = [ENDLESS, packet].map(|source| json!({ "source": source }));
    let (days, bits) = tokio::join!(bench.tell("diagram", days), bench.tell("diagram", bits));
    let limits = [
        "! the diagram cannot be drawn: it takes more than 10s of processor time",
        // A busy machine runs out of time before the process does.
        "! drawing took longer than 20s",
        "! the diagram cannot be drawn: it takes more than 512 MiB of memory, or goes too deep",
    ];
    assert!(limits[..2].contains(&days.as_str()), "{days}");
    // It takes memory as well as time, and which is used up first depends on the machine.
    assert!(limits.contains(&bits.as_str()), "{bits}");
}

#[tokio::test]
async fn a_drawing_can_be_cancelled() {
    let bench = Bench::new();
    bench.cancel();
    let output = bench.run("diagram", json!({ "source": ENDLESS })).await;
    assert_eq!((output.outcome.ending, output.files.len()), (Ending::Cancelled, 0));
}

/// The source is longer than any one argument of a program may be.
#[tokio::test]
async fn the_longest_source_is_drawn() {
    let bench = Bench::new();
    let source = format!("flowchart TD\n%% {}\na[Start]\n", "\u{1f600}".repeat(32_700));
    let drawn = picture(&bench.run("diagram", json!({ "source": source })).await);
    assert!(drawn.contains("Start"));
    assert!(!bench.heard().contains("<svg"));
}

#[tokio::test]
async fn without_a_source_the_workspace_draws_itself() {
    let bench = Bench::new();
    let nothing = "nothing to draw: no source was given, and the workspace has no Makefile with a \
                   diagrams target";
    let output = bench.run("diagram", json!(null)).await;
    assert_eq!((output.outcome.ending, text(&output).as_str()), (Ending::Idle, nothing));
    let settled = bench.assess("diagram", json!({ "name": "x" })).await.settled.unwrap();
    assert_eq!(settled.ending, Ending::Idle);

    bench.write("Makefile", "diagrams:\n\t@echo drawn > out.svg; echo made\n");
    let shown = bench.assess("diagram", json!({})).await;
    assert_eq!((shown.risk, shown.settled), (Risk::Medium, None));
    assert_eq!(shown.preview, format!("{}$ make diagrams", bench.path().display()));
    let output = bench.run("diagram", json!({})).await;
    assert_eq!(output.outcome.ending, Ending::Succeeded);
    assert_eq!(report(&output)["stdout"], "made\n");
    assert_eq!(bench.read("out.svg"), "drawn\n");
    bench.write("Makefile", "diagrams:\n\t@exit 3\n");
    let output = bench.run("diagram", json!({})).await;
    assert_eq!(output.outcome.ending, Ending::Failed);
}

/// Where Graphviz is not installed this sees that the model is told so.
#[tokio::test]
async fn graphviz_is_drawn_by_its_own_program() {
    let bench = Bench::new();
    let looked = bench.run("shell", json!({ "command": "command -v dot" })).await;
    let source = "digraph {\n  rankdir=LR; a [label=\"Start\"]; a -> b -> c\n}";
    let got = bench.run("diagram", json!({ "source": source, "name": "graph" })).await;
    if !looked.outcome.ok() {
        assert!(text(&got).starts_with("Graphviz is not installed"), "{}", text(&got));
        return;
    }
    let drawn = picture(&got);
    assert!(drawn.starts_with("<svg ") && drawn.contains("Start"), "{drawn}");
    assert!(!bench.heard().contains("<svg"));
    let bad = bench.tell("diagram", json!({ "source": "digraph {\n a ->\n}" })).await;
    assert!(bad.starts_with("! dot: ") && bad.contains("line 3"), "{bad}");
    for source in ["digraph { a [URL=\"javascript:x\"] }", "digraph { a [href=\"http://x.org\"] }"]
    {
        let got = bench.tell("diagram", json!({ "source": source })).await;
        assert!(got.starts_with("! the picture leads to "), "{got}");
    }
}
