//! The bundle of context has what is to be known, and keeps within its budget.

use std::os::unix::fs::symlink;

use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn all_sections_come_in_order() {
    let bench = Bench::new();
    bench.files(&[
        (".gitignore", "*.log\n"),
        ("AGENTS.md", "Be kind.\n"),
        ("src/a.rs", "\n\npub fn used() {}\n"),
        ("src/b.rs", "fn user() { used() }\n"),
    ]);
    bench.commit().await;
    bench.write("new.txt", "");
    bench.write("x.log", "");
    let expected = "AGENTS.md:\nBe kind.\n\
                    REPO TREE:\n.gitignore\nAGENTS.md\nnew.txt\nsrc/a.rs\nsrc/b.rs\n\
                    REPO MAP:\nsrc/a.rs:\n  - function used\nsrc/b.rs:\n  - function user\n\
                    GIT STATUS:\n?? new.txt\n";
    assert_eq!(bench.survey(bench.path(), 1000).await, expected);
}

#[tokio::test]
async fn the_map_stays_the_same_while_code_moves() {
    let bench = Bench::new();
    bench.write("a.rs", "fn a() {}\n");
    let before = bench.survey(bench.path(), 1000).await;
    bench.write("a.rs", "// Something new.\n\nfn a() { 1; }\n");
    assert_eq!(bench.survey(bench.path(), 1000).await, before);
}

#[tokio::test]
async fn what_is_not_there_has_no_section() {
    let bench = Bench::new();
    assert_eq!(bench.survey(bench.path(), 1000).await, "");
    bench.write("notes.txt", "x");
    assert_eq!(bench.survey(bench.path(), 1000).await, "REPO TREE:\nnotes.txt\n");
    assert_eq!(bench.survey(bench.path(), 0).await, "");
    assert_eq!(bench.survey(&bench.path().join("nowhere"), 1000).await, "");
    assert_eq!(bench.survey(&bench.path().join("notes.txt"), 1000).await, "");
    // A repository in which nothing changed has nothing to tell.
    bench.commit().await;
    assert_eq!(bench.survey(bench.path(), 1000).await, "REPO TREE:\nnotes.txt\n");
}

#[tokio::test]
async fn notices_of_all_folders_are_told_with_their_scope() {
    let bench = Bench::new();
    bench.files(&[
        (".git/config", ""),
        ("AGENTS.md", "Outermost.\n"),
        ("a/AGENTS.md", "Outer.\n"),
        ("a/b/AGENTS.md", "Own.\n"),
        ("a/b/c/d/AGENTS.md", "Nested.\n"),
        ("a/b/node_modules/x/AGENTS.md", "Fetched.\n"),
        ("a/other/AGENTS.md", "Beside.\n"),
    ]);
    let got = bench.survey(&bench.path().join("a/b"), 1000).await;
    let expected = "AGENTS.md:\nEach part below speaks for one folder and all in it. Where two \
                    disagree, the one nearest to the file at hand counts.\n\
                    \nFor ../.., from ../../AGENTS.md:\nOutermost.\n\
                    \nFor .., from ../AGENTS.md:\nOuter.\n\
                    \nFor ., from AGENTS.md:\nOwn.\n\
                    \nFor c/d, from c/d/AGENTS.md:\nNested.\n\
                    REPO TREE:\nAGENTS.md\nc/d/AGENTS.md\n";
    assert_eq!(got, expected);
}

#[tokio::test]
async fn no_notice_is_read_through_a_link_that_leads_out() {
    let outside = Bench::new();
    outside.write("AGENTS.md", "Secret.\n");
    let bench = Bench::new();
    bench.files(&[("sub/x", ""), ("CLAUDE.md", "Inside.\n")]);
    symlink(outside.path().join("AGENTS.md"), bench.path().join("sub/AGENTS.md")).unwrap();
    symlink("CLAUDE.md", bench.path().join("AGENTS.md")).unwrap();
    let got = bench.survey(bench.path(), 1000).await;
    assert!(got.starts_with("AGENTS.md:\nInside.\nREPO TREE:\n"), "{got}");
    assert!(!got.contains("Secret"), "{got}");
}

#[tokio::test]
async fn each_section_has_its_share() {
    let bench = Bench::new();
    bench.write("AGENTS.md", "A rule to follow.\n".repeat(500));
    for n in 0..300 {
        bench.files(&[(&format!("folder{}/file{n}.rs", n % 7), &format!("fn f{n}() {{}}\n"))]);
    }
    bench.commit().await;
    for n in 0..300 {
        bench.write(&format!("new{n}"), "");
    }
    for budget in [0, 1, 10, 50, 200, 1000, 4000] {
        let sections = bench.survey(bench.path(), budget).await;
        let titles = "AGENTS.md:\nREPO TREE:\nREPO MAP:\nGIT STATUS:\n".len();
        assert!(sections.len() <= budget * 4 + titles + 16, "{budget}: {}", sections.len());
    }
    let got = bench.survey(bench.path(), 1000).await;
    let parts: Vec<_> = ["REPO TREE:\n", "REPO MAP:\n", "GIT STATUS:\n"].into_iter().collect();
    let (agents, rest) = got.split_once(parts[0]).unwrap();
    let (tree, rest) = rest.split_once(parts[1]).unwrap();
    let (map, status) = rest.split_once(parts[2]).unwrap();
    assert!(agents.len() > 1900 && agents.ends_with(" more lines left out]\n"), "{agents}");
    assert!(tree.len() > 900 && tree.ends_with(" more files left out]\n"), "{tree}");
    assert!(map.ends_with(" left out]\n"), "{map}");
    assert!(status.len() > 300 && status.ends_with(" more lines left out]\n"), "{status}");
    assert!((0..7).all(|n| tree.contains(&format!("folder{n}/"))), "{tree}");
}

#[tokio::test]
async fn whatever_changes_is_seen_the_next_time() {
    let bench = Bench::new();
    let git = "git -c user.name=me -c user.email=me@example.org";
    let run = async |command: &str| {
        let output = bench.run("shell", json!({ "command": command.replace("GIT", git) })).await;
        assert!(output.outcome.ok(), "{command}: {}", crate::bench::text(&output));
    };
    let look = async || bench.survey(bench.path(), 1000).await;
    run("git init -q . && echo one > a.txt && GIT add . && GIT commit -qm one").await;
    let first = look().await;
    assert!(!first.contains("GIT STATUS"), "{first}");
    assert_eq!(look().await, first);
    // A file, git's list of files, and where git's history ends, each by itself.
    bench.write("a.txt", "two\n");
    assert!(look().await.ends_with("GIT STATUS:\n M a.txt\n"));
    run("GIT add .").await;
    assert!(look().await.ends_with("GIT STATUS:\nM  a.txt\n"));
    run("GIT commit -qm two").await;
    assert_eq!(look().await, first);
    run("GIT reset -q --soft HEAD~1").await;
    assert!(look().await.ends_with("GIT STATUS:\nM  a.txt\n"));
    bench.write("AGENTS.md", "Be kind.\n");
    assert!(look().await.starts_with("AGENTS.md:\nBe kind.\n"));
    std::fs::remove_file(bench.path().join("AGENTS.md")).unwrap();
    assert!(!look().await.contains("Be kind."));
}

#[tokio::test]
async fn a_change_is_seen_however_often_there_was_none() {
    let bench = Bench::new();
    bench.files(&[("AGENTS.md", "One.\n"), ("src/a.rs", "fn a() {}\n")]);
    bench.commit().await;
    let changes = [
        ("AGENTS.md", "Two.\n", "AGENTS.md:\nTwo.\n"),
        ("src/a.rs", "fn b() {}\n", "  - function b\n"),
        ("src/deep/c.rs", "fn c() {}\n", "src/deep/c.rs:\n  - function c\n"),
        ("src/deep/c.rs", "fn d() {}\n", "src/deep/c.rs:\n  - function d\n"),
        ("src/deep/.gitignore", "c.rs\n", "GIT STATUS:\n M AGENTS.md\n M src/a.rs\n?? src/deep/\n"),
    ];
    for (path, content, shown) in changes {
        let before = bench.survey(bench.path(), 1000).await;
        for _ in 0..5 {
            assert_eq!(bench.survey(bench.path(), 1000).await, before);
        }
        bench.files(&[(path, content)]);
        let after = bench.survey(bench.path(), 1000).await;
        assert!(after != before && after.contains(shown), "{path}: {after}");
    }
}
