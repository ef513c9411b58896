//! What is left of a text without the bodies of its functions.

use super::outside;

/// Checks what is left; a function begins in each line that has `fn`.
#[track_caller]
fn check(text: &str, expected: &str) {
    let starts = text.split('\n').scan(0, |start, line| {
        let begin = *start;
        *start += line.len() + 1;
        Some((begin, line))
    });
    let functions: Vec<_> =
        starts.filter(|(_, line)| line.contains("fn")).map(|(start, _)| start).collect();
    let ranges = outside(text.as_bytes(), &functions);
    let left: String = ranges.iter().map(|range| &text[range.start_byte..range.end_byte]).collect();
    assert_eq!(if ranges.is_empty() { text } else { &left }, expected, "{text}");
    for range in ranges {
        for (byte, point) in
            [(range.start_byte, range.start_point), (range.end_byte, range.end_point)]
        {
            let rows = text[..byte].matches('\n').count();
            assert!(rows == point.row || byte == text.len(), "{byte} is not in row {}", point.row);
        }
    }
}

#[test]
fn bodies_are_taken_out() {
    check("fn a() {\n  x\n  y\n}\nb\n", "fn a() {\n}\nb\n");
    check(
        "m {\n  fn a(\n    b,\n  ) {\n    x {\n    }\n\n    y\n  }\n  c\n}",
        "m {\n  fn a(\n    b,\n  ) {\n  }\n  c\n}",
    );
    check("fn a()\n{\n  x\n}\nfn b() {\n\ty\n};", "fn a()\n{\n}\nfn b() {\n};");
    check("fn a() {\r\n  x\r\n}\r\n", "fn a() {\r\n}\r\n");
    check("fn a() {\n#if X\n  x\nout:\n  y\n}\n", "fn a() {\n}\n");
}

#[test]
fn what_does_not_look_like_a_body_stays() {
    for text in [
        "",
        "fn a();\n  x\n",
        "fn a() {}\n  x\n}\n",
        "fn a() {\n}\n",
        "fn a() {\n  x\n",
        "fn a() {\n  r\"\ntext\n\"\n}\n",
        "fn a() { x\n  y }\nz\n",
        "  fn a() {\n    x\n}\n",
        "fn a() -> T\n\n{\n  x\n}\n",
        "fn",
    ] {
        check(text, text);
    }
}
