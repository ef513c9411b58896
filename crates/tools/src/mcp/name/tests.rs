//! What tools are called.

use super::*;

fn check(all: &[(&str, &str)], expected: &[&str]) {
    let all: Vec<Named<'_>> =
        all.iter().map(|(server, tool)| Named { server, digest: "d", tool }).collect();
    assert_eq!(names(&all), expected);
}

#[test]
fn a_plain_name_stays_as_it_is() {
    check(&[("files", "read-file")], &["files__read-file"]);
    check(&[("my server", "a.b/ü")], &["my_server__a_b__"]);
}

#[test]
fn names_that_would_be_the_same_are_told_apart_in_any_order() {
    let (one, two) = (("s", "a.b"), ("s", "a_b"));
    check(&[one, two], &["s__a_b_7f47f3a4", "s__a_b"]);
    check(&[two, one], &["s__a_b", "s__a_b_7f47f3a4"]);
}

#[test]
fn a_long_name_keeps_its_ends_and_is_never_too_long() {
    let long = "x".repeat(40) + &"y".repeat(40);
    let twin = "x".repeat(41) + &"y".repeat(39);
    let all = [("s", long.as_str()), ("s", twin.as_str())];
    let all: Vec<_> =
        all.iter().map(|(server, tool)| Named { server, digest: "d", tool }).collect();
    let made = names(&all);
    assert!(made.iter().all(|name| name.len() == NAME_LIMIT), "{made:?}");
    assert!(made[0].starts_with("s__xxx") && made[0] != made[1], "{made:?}");
}

#[test]
fn servers_of_one_name_are_told_apart_by_what_they_are() {
    let all = ["one", "two"].map(|digest| Named { server: "s", digest, tool: "t" });
    let made = names(&all);
    assert!(made[0] != made[1] && made.iter().all(|name| name.starts_with("s__t_")), "{made:?}");
}
