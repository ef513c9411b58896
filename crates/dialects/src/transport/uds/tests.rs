//! Lines in any pieces, and access to sockets.

use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

use super::*;

/// Reads lines of at most 5 bytes that arrive in these pieces.
fn lines(pieces: &[&[u8]]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (mut writer, reader) = tokio::io::duplex(3);
        let write = async {
            for piece in pieces {
                writer.write_all(piece).await.unwrap();
            }
            drop(writer);
        };
        let read = async {
            let mut lines = Lines::new(reader, 5);
            let mut all = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                all.push(match line {
                    Line::Complete(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    Line::TooLong => "(too long)".into(),
                });
            }
            all
        };
        tokio::join!(write, read).1
    })
}

#[test]
fn lines_are_split_and_limited() {
    assert_eq!(lines(&[b"ab\ncd\r\n\nlost"]), ["ab", "cd", ""]);
    assert_eq!(lines(&[b"12345\n123456\nok\n"]), ["12345", "(too long)", "ok"]);
    assert_eq!(lines(&["x".repeat(10_000).as_bytes(), b"\nok\n"]), ["(too long)", "ok"]);
    assert_eq!(lines(&[b"12345\r\n1234567"]), ["12345", "(too long)"]);
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_pieces(text in "[a\n]{0,40}", cut in 0..40_usize) {
        let bytes = text.as_bytes();
        let (one, two) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(lines(&[one, two]), lines(&[bytes]));
    }
}

#[tokio::test]
async fn only_this_user_can_connect() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let socket = Socket::bind(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "no other file is left");
    let (client, accepted) = tokio::join!(UnixStream::connect(&path), socket.accept());
    drop(client.unwrap());
    let here = std::env::current_dir().unwrap();
    assert_eq!(accepted.unwrap().1.directory(), Some(here));
    drop(socket);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_is_replaced_only_if_no_process_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = Socket::bind(&path).expect("no process listens there");
    let second = Socket::bind(&path).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
    // The socket of another daemon at the same path is not removed.
    std::fs::remove_file(&path).unwrap();
    let other = Socket::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
    drop(other);
    std::fs::write(&path, "text").unwrap();
    assert_eq!(Socket::bind(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    assert!(Socket::bind(Path::new("s.sock")).is_err());
    assert!(Socket::bind(&folder.path().join("none/s.sock")).is_err());
}

#[tokio::test]
async fn sockets_of_killed_daemons_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |process: u32| folder.path().join(format!("d-{process}.sock"));
    // No process has this id; its socket is closed and the file still exists.
    let (own, gone, alive) = (std::process::id(), 4_194_999, 1);
    drop(std::os::unix::net::UnixListener::bind(path(gone)).unwrap());
    drop(std::os::unix::net::UnixListener::bind(path(alive)).unwrap());
    std::fs::write(folder.path().join("d-4194998.sock"), "no socket").unwrap();
    std::fs::write(folder.path().join("d-x.sock"), "").unwrap();
    let socket = Socket::bind(&path(own)).unwrap();
    assert!(!path(gone).exists());
    assert!(path(alive).exists() && socket.path().exists());
    assert_eq!(folder.path().read_dir().unwrap().count(), 4);
}

#[tokio::test]
async fn a_path_may_be_longer_than_a_socket_address() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(100));
    std::fs::create_dir(&deep).unwrap();
    let path = deep.join("s.sock");
    assert!(connect(&path).is_err());
    let socket = Socket::bind(&path).unwrap();
    let client = connect(&path).unwrap();
    socket.accept().await.unwrap();
    assert!(Socket::bind(&path).is_err(), "another process listens there");
    drop((client, socket));
    assert_eq!(deep.read_dir().unwrap().count(), 0);
}
