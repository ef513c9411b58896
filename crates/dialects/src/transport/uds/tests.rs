//! Lines however they are cut, and sockets that are somebody's.

use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;

use super::*;

/// Reads lines of at most 5 bytes that come in such pieces.
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
                    Line::Whole(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                    Line::TooLong => "(too long)".into(),
                });
            }
            all
        };
        tokio::join!(write, read).1
    })
}

#[test]
fn lines_end_at_line_ends() {
    assert_eq!(lines(&[b"ab\ncd\r\n\nlost"]), ["ab", "cd", ""]);
    assert_eq!(lines(&[b"12345\n123456\nok\n"]), ["12345", "(too long)", "ok"]);
    assert_eq!(lines(&["x".repeat(10_000).as_bytes(), b"\nok\n"]), ["(too long)", "ok"]);
    assert_eq!(lines(&[b"12345\r\n1234567"]), ["12345", "(too long)"]);
}

proptest! {
    #[test]
    fn it_does_not_matter_how_lines_are_cut(text in "[a\n]{0,40}", cut in 0..40_usize) {
        let bytes = text.as_bytes();
        let (one, two) = bytes.split_at(cut.min(bytes.len()));
        prop_assert_eq!(lines(&[one, two]), lines(&[bytes]));
    }
}

#[tokio::test]
async fn only_this_user_can_reach_a_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let socket = Socket::bind(&path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(folder.path().read_dir().unwrap().count(), 1, "nothing else is left there");
    let (client, accepted) = tokio::join!(UnixStream::connect(&path), socket.accept());
    drop(client.unwrap());
    let here = std::env::current_dir().unwrap();
    assert_eq!(accepted.unwrap().1.directory(), Some(here));
    drop(socket);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_place_is_taken_only_if_nobody_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let first = Socket::bind(&path).expect("nobody answers there");
    let second = Socket::bind(&path).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
    // Another one in its place is not taken away.
    std::fs::remove_file(&path).unwrap();
    let other = Socket::bind(&path).unwrap();
    drop(first);
    assert!(path.exists());
    drop(other);
    std::fs::write(&path, "a letter").unwrap();
    assert_eq!(Socket::bind(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a letter");
    assert!(Socket::bind(Path::new("s.sock")).is_err());
    assert!(Socket::bind(&folder.path().join("none/s.sock")).is_err());
}

#[tokio::test]
async fn what_killed_daemons_left_is_swept() {
    let folder = tempfile::tempdir().unwrap();
    let place = |process: u32| folder.path().join(format!("d-{process}.sock"));
    // No process has such a number; its socket is closed and its file is still there.
    let (own, gone, alive) = (std::process::id(), 4_194_999, 1);
    drop(std::os::unix::net::UnixListener::bind(place(gone)).unwrap());
    drop(std::os::unix::net::UnixListener::bind(place(alive)).unwrap());
    std::fs::write(folder.path().join("d-4194998.sock"), "no socket").unwrap();
    std::fs::write(folder.path().join("d-x.sock"), "").unwrap();
    let socket = Socket::bind(&place(own)).unwrap();
    assert!(!place(gone).exists());
    assert!(place(alive).exists() && socket.path().exists());
    assert_eq!(folder.path().read_dir().unwrap().count(), 4);
}

#[tokio::test]
async fn a_path_may_be_longer_than_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(100));
    std::fs::create_dir(&deep).unwrap();
    let path = deep.join("s.sock");
    assert!(connect(&path).is_err());
    let socket = Socket::bind(&path).unwrap();
    let client = connect(&path).unwrap();
    socket.accept().await.unwrap();
    assert!(Socket::bind(&path).is_err(), "somebody answers there");
    drop((client, socket));
    assert_eq!(deep.read_dir().unwrap().count(), 0);
}
