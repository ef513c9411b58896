//! How changes look.

use super::*;

/// A change as `(path, before, after)`; `-` is no file, `?` content that was not kept,
/// `@` comes before where a link leads.
type Given<'a> = (&'a str, &'a str, &'a str);

fn held(text: &str) -> BlobBody {
    BlobBody::Bytes(text.as_bytes().to_vec())
}

fn content(text: &str) -> Option<FileContent> {
    match text {
        "-" => None,
        "?" => Some(FileContent {
            body: None,
            size: 20_000_000,
            mode: Some(0o644),
            shape: FileKind::File,
        }),
        link if link.starts_with('@') => {
            let (body, size) = (Some(held(&link[1..])), link.len() as u64 - 1);
            Some(FileContent { body, size, mode: None, shape: FileKind::Link })
        }
        text => {
            let (mode, text) = text.strip_prefix('!').map_or((0o644, text), |text| (0o755, text));
            let (body, size) = (Some(held(text)), text.len() as u64);
            Some(FileContent { body, size, mode: Some(mode), shape: FileKind::File })
        }
    }
}

#[track_caller]
fn check(changes: &[Given<'_>], expected: &str) {
    let change = |(path, before, after): &Given<'_>| ChangedFile {
        path: (*path).to_owned(),
        before: content(before),
        after: content(after),
    };
    assert_eq!(diff(&changes.iter().map(change).collect::<Vec<_>>()), expected);
}

#[test]
fn files_are_shown_in_order_as_git_would() {
    check(
        &[("b", "1\n", "-"), ("a", "1\n2\n", "1\n3"), ("c", "-", "!x\n"), ("e", "-", "")],
        "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+3\n\\ No newline at end of \
         file\ndiff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n\
         -1\ndiff --git a/c b/c\nnew file mode 100755\n--- /dev/null\n+++ b/c\n@@ -0,0 +1 @@\n+x\n\
         diff --git a/e b/e\nnew file mode 100644\n",
    );
    check(&[], "");
}

#[test]
fn what_moved_is_shown_once() {
    check(
        &[("a", "1\n", "-"), ("b", "1\n", "-"), ("c", "-", "!1\n"), ("d", "", "-"), ("e", "-", "")],
        "diff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n\
         diff --git a/a b/c\nold mode 100644\nnew mode 100755\nsimilarity index 100%\nrename from a\n\
         rename to c\ndiff --git a/d b/d\ndeleted file mode 100644\ndiff --git a/e b/e\nnew file mode \
         100644\n",
    );
}

#[test]
fn what_cannot_be_shown_is_named() {
    check(
        &[
            ("a", "x\0", "y"),
            ("b", "-", "\0"),
            ("c", "?", "-"),
            ("d", "1\n", "?"),
            ("e", "1", "!1"),
        ],
        "diff --git a/a b/a\nBinary files a/a and b/a differ\ndiff --git a/b b/b\nnew file mode 100644\n\
         Binary files /dev/null and b/b differ\ndiff --git a/c b/c\ndeleted file mode 100644\nThe \
         content of c was not kept (20000000 bytes)\ndiff --git a/d b/d\nThe content of d was not kept \
         (2 bytes before, 20000000 bytes after)\ndiff --git a/e b/e\nold mode 100644\nnew mode 100755\n",
    );
}

#[test]
fn odd_names_stay_on_their_line() {
    check(
        &[("a\n\"b", "1\n", "2\n"), ("é c", "", "1\n")],
        "diff --git \"a/a\\n\\\"b\" \"b/a\\n\\\"b\"\n--- \"a/a\\n\\\"b\"\n+++ \"b/a\\n\\\"b\"\n@@ -1 +1 @@\n\
         -1\n+2\ndiff --git a/é c b/é c\n--- a/é c\t\n+++ b/é c\t\n@@ -0,0 +1 @@\n+1\n",
    );
}

#[test]
fn links_are_shown_by_where_they_lead() {
    check(
        &[("a", "-", "@x"), ("b", "y\n", "@y\n"), ("c", "@x", "-")],
        "diff --git a/a b/a\nnew file mode 120000\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n\\ No \
         newline at end of file\ndiff --git a/b b/b\ndeleted file mode 100644\n--- a/b\n+++ /dev/null\n\
         @@ -1 +0,0 @@\n-y\ndiff --git a/b b/b\nnew file mode 120000\n--- /dev/null\n+++ b/b\n@@ -0,0 \
         +1 @@\n+y\ndiff --git a/c b/c\ndeleted file mode 120000\n--- a/c\n+++ /dev/null\n@@ -1 +0,0 @@\n\
         -x\n\\ No newline at end of file\n",
    );
}
