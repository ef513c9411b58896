//! The table of how command lines are split.

use super::*;

#[track_caller]
fn check(command: &str, expected: &str) {
    let show = |simple: &Simple| {
        let pipe = if simple.piped { "| " } else { "" };
        let opens = if simple.opens { " (" } else { "" };
        format!("{pipe}{}{opens}", simple.words.join("·"))
    };
    let got: Vec<_> = split(command).commands.iter().map(show).collect();
    assert_eq!(got.join(" ; "), expected, "{command}");
}

#[test]
fn commands_are_split_as_a_shell_would() {
    check("ls -la", "ls·-la");
    check("a && b || c; d & e\nf", "a ; b ; c ; d ; e ; f");
    check("a | b |& c || d", "a ; | b ; | c ; d");
    check("git commit -m 'a; rm -rf /' # && x", "git·commit·-m·a; rm -rf /");
    check(r#"echo "a\b\"\$""#, r#"echo·a\b"$"#);
    check(r#"echo "a; b" \; 'it'"'"'s'"#, "echo·a; b·;·it's");
    check("(cd x && make)", "cd·x ; make");
    check("echo '' x", "echo··x");
    check("", "");
}

#[test]
fn commands_inside_of_others_are_found() {
    check("echo $(rm x) y", "rm·x ; echo·$·y (");
    check("echo \"a $(rm x)\"; b", "rm·x ; echo·a $· ( ; b");
    check("echo \"$(a \"$(b)\" c)d\"; e", "b ; a·$··c ( ; echo·$·d ( ; e");
    check("echo `rm x`; b", "rm·x ; echo ( ; b");
    check("echo \"`rm x`\" b", "rm·x ; echo···b (");
    check("bash <(curl u)", "curl·u ; bash·< (");
    check("echo '$(rm x)'", "echo·$(rm x)");
    check("a | (b; c) | d", "a ; | b ; c ; | d");
    check("echo $(a", "a ; echo·$ (");
    check("f() { rm x; }", "f ( ; rm·x ; }");
    check("a | { b; }", "a ; | b ; }");
}

#[test]
fn redirects_are_words_of_their_own() {
    check("a >b", "a·>b");
    check("a >> \"b\" c", "a·c·>b");
    check(">x rm y; <z b", "rm·y·>x ; b·<z");
    check("a > \"b c\"; d", "a·>b c ; d");
    check("> a", ":·>a");
    check("a >&2 2>&- >&b", "a·>b");
    check("a<b>c", "a·<b·>c");
    check("a 2>&1 >/dev/null", "a");
    check("a &> b", "a·>b");
    check("a x2> b; c", "a·x2·>b ; c");
}

#[test]
fn a_text_after_the_command_hides_nothing() {
    let line = split("cat <<EOF\nit's\nEOF\nrm -rf x");
    let found = |simple: &Simple| simple.words == ["rm", "-rf", "x"];
    assert!(line.commands.iter().any(found) && !line.sure, "{line:?}");
}

#[test]
fn nothing_panics_on_what_is_no_command() {
    for odd in ["'", "\"", "\\", "$(", "`", ">", "|", "&", "a >&", "((", "\"$(\"", "é>'", "&>"] {
        split(odd);
    }
}
