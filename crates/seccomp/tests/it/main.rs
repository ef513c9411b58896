//! Threads that are asked about, and whoever answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use quintet_seccomp::{ASK, Instruction, Listener, listen};
use rustix::thread::set_no_new_privs;

const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
const ALLOW: u32 = 0x7fff_0000;
const PATH: &str = "/no such file";

/// Asks about `chdir` alone.
fn filter() -> [Instruction; 4] {
    let step = |code, jt, jf, k| Instruction { code, jt, jf, k };
    let chdir = u32::try_from(libc::SYS_chdir).unwrap();
    [
        step(LOAD, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, chdir),
        step(RETURN, 0, 0, ASK),
        step(RETURN, 0, 0, ALLOW),
    ]
}

/// A thread that tries to go where nothing is, each time it is told to.
fn watched() -> (Listener, Sender<()>, Receiver<io::Error>, JoinHandle<()>) {
    let (hand, taken) = channel();
    let (go, told) = channel();
    let (say, heard) = channel();
    let thread = thread::spawn(move || {
        set_no_new_privs(true).unwrap();
        hand.send(listen(&filter())).unwrap();
        while told.recv().is_ok() {
            let error = std::env::set_current_dir(PATH).unwrap_err();
            if say.send(error).is_err() {
                return;
            }
        }
    });
    (taken.recv().unwrap().unwrap(), go, heard, thread)
}

#[test]
fn a_call_waits_until_it_is_let_go_on() {
    let (listener, go, heard, thread) = watched();
    for _ in 0..3 {
        go.send(()).unwrap();
        let notice = listener.receive().unwrap().unwrap();
        assert_eq!(notice.call, libc::SYS_chdir);
        assert!(listener.waits(&notice) && heard.try_recv().is_err());
        let mut path = [0; PATH.len()];
        assert_eq!(notice.read(notice.arguments[0], &mut path).unwrap(), PATH.len());
        assert_eq!(path, PATH.as_bytes());
        assert!(notice.read(1, &mut path).is_err());
        listener.go_on(&notice).unwrap();
        assert_eq!(heard.recv().unwrap().raw_os_error(), Some(libc::ENOENT));
        assert!(!listener.waits(&notice));
        listener.go_on(&notice).unwrap();
    }
    assert!(File::open("/dev/null").is_ok());
    drop(go);
    thread.join().unwrap();
}

#[test]
fn nobody_waits_for_somebody_who_is_gone() {
    let (listener, go, heard, thread) = watched();
    go.send(()).unwrap();
    let notice = listener.receive().unwrap().unwrap();
    assert!(listener.waits(&notice));
    drop(listener);
    assert_eq!(heard.recv().unwrap().raw_os_error(), Some(libc::ENOSYS));
    go.send(()).unwrap();
    assert_eq!(heard.recv().unwrap().raw_os_error(), Some(libc::ENOSYS));
    drop(go);
    thread.join().unwrap();
}
