//! What rules get to see of command lines, and what they must never be told is clear.

use proptest::prelude::*;
use quintet_kernel::policy::{Action, ApprovalPolicy, OnDeny, Pattern, Rule, Verdict};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};

use super::*;

fn of(command: &str) -> CallSubject {
    subject(&[command.to_owned()], Risk::Medium)
}

#[track_caller]
fn check(command: &str, commands: &[&str], opaque: bool) {
    let got = of(command);
    assert_eq!(
        (&got.commands[..], got.opaque),
        (&commands.iter().map(ToString::to_string).collect::<Vec<_>>()[..], opaque),
        "{command}"
    );
}

/// Whether a rule that allows such commands lets a line run.
fn is_allowed(pattern: &str, command: &str) -> bool {
    let rule = Rule {
        kind: None,
        tool: None,
        path: None,
        command: Some(Pattern::command(pattern)),
        action: Action::Allow,
        reason: None,
    };
    let approval = ApprovalPolicy {
        rules: vec![rule],
        kinds: vec![ToolKind::Exec],
        tools: Vec::new(),
        on_deny: OnDeny::Continue,
        expires: None,
    };
    let spec = ToolSpec {
        name: "shell".into(),
        description: String::new(),
        schema: serde_json::Value::Null,
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    };
    approval.verdict(&spec, Some(&of(command))) == Verdict::Allow
}

#[test]
fn clear_lines_are_their_commands() {
    check("git status", &["git status"], false);
    check("git  status\t-s;ls 'a b'", &["git status -s", "ls a b"], false);
    check("a && b || c | d & e\nf", &["a", "b", "c", "d", "e", "f"], false);
    check("/usr/bin/git status", &["git status"], false);
    check("./test.sh x", &["./test.sh x"], false);
    check("/opt/x/rm y", &["/opt/x/rm y", "rm y"], false);
    check("../bin/rm y", &["../bin/rm y", "rm y"], false);
    check("ls *.rs 2>/dev/null 2>&1", &["ls *.rs"], false);
    check("wc -l < a", &["wc -l <a"], false);
    check("echo '$(rm x)' \\$x '>' # ; rm", &["echo $(rm x) $x >"], false);
    check("[ -f x ] && cargo test", &["[ -f x ]", "cargo test"], false);
    check("python3 -c 'print(1)'", &["python3 -c print(1)"], false);
    check("cargo test; cargo test", &["cargo test"], false);
}

#[test]
fn what_may_do_more_is_opaque() {
    for command in [
        "git status $(rm x)",
        "git status `rm x`",
        "git status > .bashrc",
        "git status >> x",
        "git status &> x",
        "git status >& x",
        "git status >&2x",
        "git status >",
        "git status <> x",
        "git status << x\nx",
        "git status <<< x",
        "git status <(rm x)",
        "git status $x",
        "git status \"$x\"",
        "git status \"`rm x`\"",
        "git status $'x'",
        "git {status,push}",
        "(git status)",
        "{ git status; }",
        "git() { rm x; }; git status",
        "function git { rm x; }",
        "if git status; then ls; fi",
        "! git status",
        "time git status",
        "PATH=. git status",
        "PATH=.; git status",
        "PATH+=:. git status",
        "export PATH=.; git status",
        "alias git=rm\ngit status",
        "trap 'rm x' EXIT; git status",
        "eval git status",
        ". x; git status",
        "hash -p ./x git; git status",
        "sudo git status",
        "ls | xargs git status",
        "bash -c 'git status'",
        "bash -lc ls",
        "gi? status",
        "~/git status",
        "'git status' x",
        "'git status",
        "\"git status",
        "git status\r",
        "git\u{a0}status",
        "'' x",
    ] {
        let got = of(command);
        assert!(got.opaque && got.similar.is_none(), "{command}: {got:?}");
        assert!(!is_allowed("*", command), "{command}");
    }
}

#[test]
fn commands_inside_of_others_are_found() {
    for (command, inside) in [
        ("sudo rm x", "rm x"),
        ("sudo -u root rm x", "rm x"),
        ("env A=b rm x", "rm x"),
        ("A=b rm x", "rm x"),
        ("A+=b rm x", "rm x"),
        (">y rm x", "rm x >y"),
        ("<y rm x", "rm x <y"),
        ("ls | xargs rm x", "rm x"),
        ("find . -exec rm x \\;", "rm x ;"),
        ("bash -c 'ls; rm x'", "rm x"),
        ("bash -c rm", "rm"),
        ("sudo sh -c \"bash -c 'rm x'\"", "rm x"),
        ("eval 'rm x'", "rm x"),
        ("eval rm x", "rm x"),
        ("echo $(rm x)", "rm x"),
        ("if true; then rm x; fi", "rm x"),
        ("f() { rm x; }", "rm x"),
        ("cat <<'E'\nit's\nE\nrm x", "rm x"),
        ("echo > \"a b\"; rm x", "rm x"),
        ("r\\m x", "rm x"),
        ("'r'm x", "rm x"),
    ] {
        let got = of(command).commands;
        assert!(got.iter().any(|found| found == inside), "{command}: {got:?}");
        assert!(got.len() > 1 || !command.contains("sudo"), "{command}");
    }
}

#[test]
fn a_rule_that_allows_one_command_allows_no_other() {
    for command in ["git status", "git status -s", "/usr/bin/git status", "git status 2>/dev/null"]
    {
        assert!(is_allowed("git status*", command), "{command}");
    }
    for command in [
        "git status; rm x",
        "git status $(rm x)",
        "git status > .bashrc",
        "git status\nrm x",
        "git status & rm x",
        "git status && rm x",
        "git status || rm x",
        "git status | tee x",
        "git status |& tee x",
        "git status;rm x",
        "git status # \nrm x",
        "git status ';' ; rm x",
        "rm x; git status",
        "./git status",
        "/tmp/git status",
        "../git status",
        "\"git status\"",
        "git \"status",
        "LD_PRELOAD=./x git status",
        "git push",
        "",
    ] {
        assert!(!is_allowed("git status*", command), "{command}");
    }
}

#[test]
fn similar_calls_have_their_programs_in_common() {
    let similar = |command: &str| of(command).similar.unwrap_or_default();
    let both = "commands `cargo -q test`, `git diff --stat`";
    assert_eq!(similar("git diff --stat && cargo -q test x"), both);
    assert_eq!(
        similar("cargo test; cargo test --all"),
        "commands `cargo test --all`, `cargo test`"
    );
    assert_eq!(similar("ls -la"), "commands `ls -la`");
    assert_eq!(similar("git diff a.rs"), similar("git diff a.rs b.rs"));
    // What an option says is not covered by a word for the program.
    for (asked, other) in [
        ("ls src", "ls -R src"),
        ("git push origin", "git push origin --force"),
        ("sort a -o a", "sort a -o /elsewhere"),
        ("git log", "git -c core.pager=evil log"),
        ("tar xf a.tar", "tar xf a.tar --to-command=evil"),
    ] {
        assert_ne!(similar(asked), similar(other), "{asked}");
    }
    assert_eq!(similar(""), "");
    assert_eq!(subject(&["git push -f".to_owned()], Risk::High).similar, None);
}

#[test]
fn no_line_takes_too_long_or_too_much() {
    let long = format!("sudo {}", "word ".repeat(100_000));
    let nested = "bash -c 'bash -c \"a b\"' ".repeat(5_000);
    let many: String = (0..50_000).map(|n| format!("c{n};")).collect();
    for command in [long, nested, many] {
        let got = of(&command);
        assert!(got.opaque && got.commands.iter().map(String::len).sum::<usize>() <= TEXT_LIMIT);
    }
}

proptest! {
    /// Whatever stands around it, a second command or a file that is written is never covered.
    #[test]
    fn nothing_hides_behind_an_allowed_command(
        arguments in r"([ \t][a-z0-9./=-]{1,6}|[ \t]'[^'\x00]{0,6}'|[ \t]\\[;&|<>$]){0,3}",
        blank in r"[ \t]{0,2}",
        operator in prop::sample::select(vec![
            ";", "\n", "&", "&&", "||", "|", "|&", "$(", "`", ">", ">>", ">|", "&>", "<(", "<<",
        ]),
    ) {
        let command = format!("git status{arguments}{blank}{operator}{blank}evil");
        prop_assert!(!is_allowed("git status*", &command), "{command}: {:?}", of(&command));
    }

    #[test]
    fn nothing_panics(command in "\\PC*") {
        of(&command);
    }
}
