//! Tests of which socket is used.

use tokio::net::UnixListener;

use super::*;

fn settings(runtime: &Path) -> Settings {
    Settings { runtime: runtime.to_owned(), ..Settings::default() }
}

#[tokio::test]
async fn the_newest_socket_that_answers_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let socket = |name: &str| folder.path().join(format!("openagent-terminal-{name}.sock"));
    let live = UnixListener::bind(socket("7")).unwrap();
    drop(UnixListener::bind(socket("8")).unwrap());
    std::fs::write(socket("9"), "no socket").unwrap();
    let _other = UnixListener::bind(folder.path().join("else.sock")).unwrap();

    let stream = open(&settings(folder.path())).await.unwrap();
    let peer = stream.peer_addr().unwrap();
    assert_eq!(peer.as_pathname(), Some(socket("7").as_path()));
    drop(live);
}

#[tokio::test]
async fn the_error_without_a_daemon_says_what_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let error = open(&settings(folder.path())).await.unwrap_err().to_string();
    assert!(error.contains("quintet serve") && error.contains("[listen] terminal"), "{error}");

    let socket = folder.path().join("gone.sock");
    let named = Settings { socket: Some(socket), ..Settings::default() };
    let error = open(&named).await.unwrap_err().to_string();
    assert!(error.contains("gone.sock") && error.contains("quintet serve"), "{error}");
}
