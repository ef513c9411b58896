//! Ranges and tags in the headers of requests.

use super::*;

#[test]
fn a_range_is_read_or_left_alone() {
    let check = |header: &str, then: Wanted| {
        assert_eq!(wanted(Some(header), 10), then, "{header}");
    };
    check("bytes=0-4", Wanted::Part(0..5));
    check("BYTES=5-", Wanted::Part(5..10));
    check("bytes=-3", Wanted::Part(7..10));
    check("bytes=-30", Wanted::Part(0..10));
    check("bytes=9-99", Wanted::Part(9..10));
    check("bytes=0-18446744073709551615", Wanted::Part(0..10));
    check("bytes=10-", Wanted::Nothing);
    check("bytes=10-12", Wanted::Nothing);
    check("bytes=-0", Wanted::Nothing);
    check("bytes=5-4", Wanted::All);
    check("bytes=0-1,3-4", Wanted::All);
    check("bytes=-", Wanted::All);
    check("bytes=+1-2", Wanted::All);
    check("bytes=99999999999999999999-", Wanted::All);
    check("lines=1-2", Wanted::All);
    check("x", Wanted::All);
    assert_eq!(wanted(None, 10), Wanted::All);
    assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Nothing);
}

#[test]
fn a_tag_is_one_of_several() {
    assert!(names(Some("\"a\""), "\"a\""));
    assert!(names(Some("\"b\", W/\"a\""), "\"a\""));
    assert!(names(Some("*"), "\"a\""));
    assert!(!names(Some("\"b\""), "\"a\""));
    assert!(!names(Some("a"), "\"a\""));
    assert!(!names(None, "\"a\""));
}
