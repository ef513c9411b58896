//! Ids of calls, written and read.

use super::*;

#[test]
fn a_name_is_read_as_it_was_written() {
    let request = Request::parse("sess_1:call_2").unwrap();
    assert_eq!(name(request.session.as_str(), &request.call), "sess_1:call_2");
    for name in ["", "call_2", ":call_2", "sess_1:", "../x:call"] {
        assert_eq!(Request::parse(name), None, "{name}");
    }
}
