//! Tests of the file before and after a change.

use super::*;

fn entry() -> Entry {
    Entry {
        command: vec!["npx".into(), "a \"b\"".into()],
        env: vec![("KEY".into(), "v".into())],
        timeout_seconds: Some(9),
        ..Entry::default()
    }
}

const BEFORE: &str = "# mine\ndata_dir = \"/d\" # here\n\n[listen]\nharness = \"off\"\n";

#[test]
fn an_added_server_can_be_removed_and_nothing_else_changes() {
    let with = added(BEFORE, "files", &entry()).unwrap();
    let section = "\n\n[mcp.servers.files]\ncommand = [\"npx\", 'a \"b\"']\ntimeout_seconds = 9\n[mcp.servers.files.env]\n\"KEY\" = \"v\"\n";
    assert_eq!(with, BEFORE.trim_end().to_owned() + section);
    let both =
        added(&with, "files2", &Entry { url: Some("http://x/mcp".into()), ..Entry::default() });
    let both = both.unwrap();
    assert_eq!(servers(&both).unwrap(), ["files", "files2"]);
    let less = removed(&both, "files").unwrap();
    assert_eq!(servers(&less).unwrap(), ["files2"]);
    assert_eq!(removed(&less, "files2").unwrap(), BEFORE);
}

#[test]
fn a_sandbox_that_is_not_the_usual_one_is_written() {
    let read = vec!["/a b".into(), "/c".into()];
    let sandbox = ServerSandbox { enabled: false, network: false, read, write: vec!["/d".into()] };
    let with = added("", "x", &Entry { sandbox, ..entry() }).unwrap();
    let lines =
        "sandbox = false\nnetwork = false\nread = [\"/a b\", \"/c\"]\nwrite = [\"/d\"]\n[mcp";
    assert!(with.contains(lines), "{with}");
}

#[test]
fn invalid_changes_are_refused() {
    let with = added("", "a", &entry()).unwrap();
    assert!(added(&with, "a", &entry()).is_err());
    assert!(added("", "a.b", &entry()).is_err());
    assert!(removed("", "a").is_err());
    assert!(removed("mcp.servers = { a = { url = \"http://x\" } }\n", "a").is_err());
}
