//! Patches as data: a file, a patch, and the file or the complaint that results.

use proptest::prelude::*;
use similar::TextDiff;

use super::apply::apply;
use super::*;

/// Applies the hunks of a patch for one file.
fn patched(old: &str, patch: &str) -> Result<(String, Vec<String>), String> {
    let sections = parse(patch)?;
    let [section] = &sections[..] else { panic!("{} sections", sections.len()) };
    let applied = apply(old.as_bytes(), &section.hunks);
    let notes: Result<Vec<_>, _> = applied.notes.into_iter().collect();
    Ok((String::from_utf8(applied.bytes).expect("it is text"), notes?))
}

#[track_caller]
fn check(old: &str, patch: &str, new: &str, notes: &[&str]) {
    let head = if patch.starts_with("***") { "" } else { "--- a/f\n+++ b/f\n" };
    let (got, got_notes) = patched(old, &format!("{head}{patch}")).unwrap();
    assert_eq!(got, new);
    assert_eq!(got_notes, notes);
}

#[test]
fn a_hunk_is_found_where_it_is_or_nearby() {
    let patch = "@@ -2,2 +2,2 @@\n b\n-c\n+C\n";
    check("a\nb\nc\nd\n", patch, "a\nb\nC\nd\n", &["line 2"]);
    check("0\n1\na\nb\nc\nd\n", patch, "0\n1\na\nb\nC\nd\n", &["line 4 (offset 2)"]);
    check("b\nc\n", patch, "b\nC\n", &["line 1 (offset -1)"]);
    // Two places: the nearer one counts.
    check(
        "b\nc\n1\n2\n3\nb\nc\n",
        "@@ -5,2 +5,2 @@\n b\n-c\n+C\n",
        "b\nc\n1\n2\n3\nb\nC\n",
        &["line 6 (offset 1)"],
    );
}

#[test]
fn the_offset_of_a_hunk_is_expected_of_the_next() {
    let old = "x\nx\na\ne\nx\na\ne\n";
    let patch = "@@ -1 +1 @@\n-a\n+b\n@@ -4 +4 @@\n-a\n+c\n";
    let notes = ["line 3 (offset 2)", "line 6 (offset 2)"];
    check(old, patch, "x\nx\nb\ne\nx\nc\ne\n", &notes);
}

#[test]
fn white_space_may_differ_and_what_stays_is_kept() {
    let patch = "@@ -1,2 +1,2 @@\n fn a() {\n-    b();\n+    c();\n";
    let trailing = "line 1 (trailing white space ignored)";
    check("fn a() {  \n    b();\t\n", patch, "fn a() {  \n    c();\n", &[trailing]);
    let any = "line 1 (white space ignored)";
    check("fn  a()  {\n\tb();\n", patch, "fn  a()  {\n    c();\n", &[any]);
    // An exact place far away is better than a near one that is not exact.
    let old = "fn  a() {\n    b();\n1\n2\nfn a() {\n    b();\n";
    let new = "fn  a() {\n    b();\n1\n2\nfn a() {\n    c();\n";
    check(old, patch, new, &["line 5 (offset 4)"]);
}

#[test]
fn crlf_files_keep_their_line_ends() {
    let plain = "@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n";
    check("a\r\nb\r\n", plain, "a\r\nB\r\nc\r\n", &["line 1"]);
    let careful = "@@ -1,2 +1,3 @@\n a\r\n-b\r\n+B\r\n+c\r\n";
    check("a\r\nb\r\n", careful, "a\r\nB\r\nc\r\n", &["line 1"]);
    let throughout = format!("--- a/f\n+++ b/f\n{plain}").replace('\n', "\r\n");
    assert_eq!(patched("a\nb\n", &throughout).unwrap().0, "a\nB\nc\n");
    assert_eq!(patched("a\r\nb\r\n", &throughout).unwrap().0, "a\r\nB\r\nc\r\n");
    // A patch may be about the line ends themselves.
    check("a\nb\n", "@@ -1,2 +1,2 @@\n-a\n+a\r\n b\n", "a\r\nb\n", &["line 1"]);
    check("a\r\nb\r\n", "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n", "a\nb\r\n", &["line 1"]);
}

#[test]
fn a_missing_last_line_end_is_kept_added_or_taken() {
    let none = "\\ No newline at end of file\n";
    let keep = format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+c\n{none}");
    check("a\nb", &keep, "a\nc", &["line 1"]);
    let add = format!("@@ -1,2 +1,2 @@\n a\n-b\n{none}+b\n");
    check("a\nb", &add, "a\nb\n", &["line 1"]);
    let take = format!("@@ -1,2 +1,2 @@\n a\n-b\n+b\n{none}");
    check("a\nb\n", &take, "a\nb", &["line 1"]);
    // A patch that does not know of it changes nothing about it.
    check("a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc", &["line 1"]);
    check("a\nb", "@@ -1,2 +1,3 @@\n a\n b\n+c\n", "a\nb\nc", &["line 1"]);
    check("a\nb", "@@ -2,1 +2,0 @@\n-b\n", "a\n", &["line 2"]);
}

#[test]
fn what_models_get_wrong_is_forgiven() {
    let new = "a\nB\n\nd\n";
    let old = "a\nb\n\nd\n";
    for patch in [
        "@@ -1,9 +1,9 @@\n a\n-b\n+B\n \n d\n",
        "@@ -1,1 +1,1 @@\n a\n-b\n+B\n",
        "@@ -1,4 +1,4 @@\n a\n-b\n+B\n\n d\n",
        "@@ @@\n a\n-b\n+B\n\n d\n",
        "@@\n-b\n+B\n\n",
    ] {
        let (got, _) = patched(old, &format!("--- f\n+++ f\n{patch}")).unwrap();
        assert_eq!(got, new, "{patch}");
    }
}

#[test]
fn counts_tell_removed_dashes_from_the_next_file() {
    let patch = "@@ -1,3 +1,2 @@\n--- a\n-+++ b\n+++ c\n x\n";
    check("-- a\n+++ b\nx\n", patch, "++ c\nx\n", &["line 1"]);
}

#[test]
fn a_hunk_that_promised_too_much_does_not_swallow_the_next_file() {
    let hunk = "@@ -1,7 +1,9 @@\n a\n-b\n+c\n";
    let patch = format!("--- a/x\n+++ b/x\n{hunk}--- a/y\n+++ b/y\n{hunk}");
    let lengths: Vec<_> = parse(&patch).unwrap().iter().map(|s| s.hunks[0].lines.len()).collect();
    assert_eq!(lengths, [3, 3]);
}

#[test]
fn a_hunk_that_does_not_fit_says_what_it_expected() {
    let error = patched("a\nb\n", "--- a/f\n+++ b/f\n@@ -2 +2 @@\n-x\n+y\n").unwrap_err();
    assert_eq!(
        error,
        "does not apply: these lines were expected near line 2:\n    | x\n    but there the file \
         has:\n    | b"
    );
}

#[test]
fn the_envelope_finds_its_place_by_anchors_and_context() {
    let old = "class A\n  def f\n    x\nclass B\n  def f\n    x\n";
    let patch = |body: &str| format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch\n");
    let second = "class A\n  def f\n    x\nclass B\n  def f\n    y\n";
    check(old, &patch("@@ class B\n   def f\n-    x\n+    y\n"), second, &["line 5"]);
    check(old, &patch("@@ class B\n@@   def f\n-    x\n+    y\n"), second, &["line 6"]);
    check(old, &patch("@@\n-    x\n+    y\n*** End of File\n"), second, &["line 6"]);
    let first = "class A\n  def f\n    y\nclass B\n  def f\n    x\n";
    check(old, &patch("-    x\n+    y\n"), first, &["line 3"]);
    check("a\n", &patch("@@\n+b\n"), "a\nb\n", &["line 2"]);
    let error = patched(old, &patch("@@ class C\n-    x\n+    y\n")).unwrap_err();
    assert_eq!(error, "does not apply: there is no line `class C` after line 0");
}

#[test]
fn every_kind_of_section_is_read() {
    let git = "diff --git a/m b/m\nold mode 100644\nnew mode 100755\n\
               diff --git a/e b/e\nnew file mode 100644\nindex 0000000..e69de29\n\
               diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n\
               diff --git a/d b/d\ndeleted file mode 100644\n--- a/d\n+++ /dev/null\n\
               @@ -1 +0,0 @@\n-x\n\
               --- /dev/null\n+++ b/c d\t2026-01-01\n@@ -0,0 +1 @@\n+x\n-- \n2.50.0\n";
    let read = |patch: &str| -> Vec<_> {
        let sections = parse(patch).unwrap();
        sections.into_iter().map(|s| (s.path.display().to_string(), s.action, s.mode)).collect()
    };
    let of = |path: &str, action: Action| (path.to_owned(), action, None);
    let moved = || Action::Move("n".into());
    let expected = [
        ("m".to_owned(), Action::Update, Some(0o755)),
        of("e", Action::Create),
        of("o", moved()),
        of("d", Action::Delete),
        of("c d", Action::Create),
    ];
    assert_eq!(read(git), expected);
    let envelope = "*** Begin Patch\n*** Add File: e\n+x\n\n*** Delete File: d\n*** Update File: \
                    o\n*** Move to: n\n*** End Patch";
    let expected = [of("e", Action::Create), of("d", Action::Delete), of("o", moved())];
    assert_eq!(read(envelope), expected);
    let quoted = "--- \"a/\\303\\244.txt\"\n+++ \"b/\\303\\244.txt\"\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(read(quoted), [of("ä.txt", Action::Update)]);
}

#[test]
fn what_cannot_be_read_says_where() {
    let cases = [
        ("hello", "the patch names no file"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1 of the patch: a hunk before any file name"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "the patch names two files"),
        ("diff --git a/x b/x\nGIT binary patch\n", "line 2 of the patch: binary files"),
        ("*** Begin Patch\n*** Update File: f\n-a\n+b\n", "the patch has no `*** End Patch`"),
        ("*** Begin Patch\n*** Add File: f\nx\n*** End Patch\n", "line 3 of the patch: every line"),
        ("*** Begin Patch\n*** Foo: f\n*** End Patch\n", "line 2 of the patch: expected the head"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch\n", "line 2 of the patch: nothing"),
    ];
    for (patch, expected) in cases {
        let error = parse(patch).unwrap_err();
        assert!(error.starts_with(expected), "{patch:?}: {error}");
    }
}

#[test]
fn a_thousand_hunks_apply() {
    let line = |n: usize| format!("line {n}\n");
    let old: String = (0..10_000).map(line).collect();
    let new: String = (0..10_000)
        .map(|n| if n % 10 == 5 { format!("new {n}\nmore\n") } else { line(n) })
        .collect();
    let diff = TextDiff::from_lines(&old, &new);
    let patch = diff.unified_diff().context_radius(2).header("a/f", "b/f").to_string();
    let (got, notes) = patched(&old, &patch).unwrap();
    assert_eq!(notes.len(), 1000);
    assert!(got == new);
    // The same when every hunk is off.
    let (got, notes) = patched(&format!("first\n{old}"), &patch).unwrap();
    assert!(got == format!("first\n{new}") && notes[999].ends_with("(offset 1)"));
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just(String::new()),
        "[ab ]{0,3}",
        Just("-- a".to_owned()),
        Just("++ b".to_owned()),
        Just("@@ -1 +1 @@".to_owned()),
        Just("\\ x".to_owned()),
    ];
    (prop::collection::vec(line, 0..30), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !lines.is_empty() { text + "\n" } else { text }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_diff_applied_gives_the_new_text(old in text(), new in text(), radius in 0_usize..4, crlf: bool) {
        let ends = |text: String| if crlf { text.replace('\n', "\r\n") } else { text };
        let (old, new) = (ends(old), ends(new));
        prop_assume!(old != new);
        let diff = TextDiff::from_lines(&old, &new);
        let patch = diff.unified_diff().context_radius(radius).header("a/f", "b/f").to_string();
        let (got, _) = patched(&old, &patch).map_err(TestCaseError::fail)?;
        prop_assert_eq!(got, new, "{}", patch);
    }

    #[test]
    fn no_patch_brings_it_down(old in text(), patch in "[-+ @a\\\\*\n]{0,40}", form in 0..3) {
        let patch = match form {
            0 => patch,
            1 => format!("--- a/f\n+++ b/f\n@@ -1,3 +1,2 @@\n{patch}"),
            _ => format!("*** Begin Patch\n*** Update File: f\n{patch}\n*** End Patch"),
        };
        for section in parse(&patch).unwrap_or_default() {
            apply(old.as_bytes(), &section.hunks);
        }
    }
}
