//! Answers the kernel for as long as a command runs.

use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use quintet_seccomp::{Listener, Notice};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::keeper::Keeper;
use super::named::{At, Deed, deed};
use super::real::real;
use super::{Order, take_over};

/// How long the last note may take once nobody waits for it any more: a disk may hang.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command's record in the making.
#[derive(Debug)]
pub(crate) struct Served {
    /// Closed when all is noted.
    noted: Receiver<()>,
    /// Closed when the command is over.
    running: PipeWriter,
}

impl Served {
    /// Begins to keep a record by an order; gives the socket that the command is to have as its stdin.
    /// Nothing if no record can be kept, and then the command runs without.
    pub(crate) fn begin(order: &str) -> Option<(Self, UnixStream)> {
        let order: Order = serde_json::from_str(order).ok()?;
        let keeper = Keeper::open(&order).ok()?;
        let (ours, theirs) = UnixStream::pair().ok()?;
        let (over, running) = io::pipe().ok()?;
        let (noting, noted) = channel::<()>();
        let body = move || {
            serve(keeper, &ours, &over);
            drop(noting);
        };
        thread::Builder::new().name("record".to_owned()).spawn(body).ok()?;
        Some((Self { noted, running }, theirs))
    }

    /// The command is over, and so is all that it started.
    pub(crate) fn end(self) {
        drop(self.running);
        // Whatever went wrong there, the end of the log is missing then.
        let _ended = self.noted.recv_timeout(PATIENCE);
    }
}

/// Any trouble with the log ends the record, whose end is missing then, so that it is known to be
/// incomplete. The command goes on.
fn serve(mut keeper: Keeper, socket: &UnixStream, over: &PipeReader) {
    let listened = take_over(socket).and_then(|listener| match listener {
        Some(listener) => listen(&mut keeper, &listener, over),
        None => keeper.gap("", "the kernel does not say what commands write"),
    });
    if let Err(error) = listened.and_then(|()| keeper.done()) {
        eprintln!("quintet: what the command wrote could not be recorded: {error}");
    }
}

fn listen(keeper: &mut Keeper, listener: &Listener, over: &PipeReader) -> io::Result<()> {
    let mut trouble = None;
    loop {
        let mut files =
            [PollFd::new(listener, PollFlags::IN), PollFd::new(over, PollFlags::empty())];
        match poll(&mut files, None) {
            Err(Errno::INTR) => continue,
            done => done?,
        };
        let (asked, ended) = (files[0].revents(), files[1].revents());
        if asked.contains(PollFlags::IN) {
            if let Some(notice) = listener.receive()? {
                if trouble.is_none() {
                    trouble = note(keeper, listener, &notice).err();
                }
                listener.go_on(&notice)?;
            }
        } else if !ended.is_empty() || asked.intersects(PollFlags::HUP | PollFlags::ERR) {
            return trouble.map_or(Ok(()), Err);
        }
    }
}

fn note(keeper: &mut Keeper, listener: &Listener, notice: &Notice) -> io::Result<()> {
    match deed(notice).and_then(|deed| resolved(notice, deed)) {
        // By the time it was read, the thread may have been another one.
        Ok(Some(deed)) if listener.waits(notice) => keep(keeper, deed)?,
        Ok(_) => {}
        // Where there is no memory the call fails by itself; where it may not be read, nobody knows.
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
            keeper.gap("", "a program may not be looked into")?;
        }
        Err(_) => {}
    }
    Ok(())
}

/// A deed to real paths.
#[derive(Debug)]
enum Real {
    Write(PathBuf),
    Name(PathBuf),
    Mode(PathBuf),
    Link(PathBuf, PathBuf),
    Move(PathBuf, PathBuf),
    Swap(PathBuf, PathBuf),
}

fn resolved(notice: &Notice, deed: Option<Deed>) -> io::Result<Option<Real>> {
    let one = |at: &At| real(notice, at);
    let two = |a: &At, b: &At| Ok::<_, io::Error>(one(a)?.zip(one(b)?));
    Ok(match deed {
        None => None,
        Some(Deed::Write(at)) => one(&at)?.map(Real::Write),
        Some(Deed::Name(at)) => one(&at)?.map(Real::Name),
        Some(Deed::Mode(at)) => one(&at)?.map(Real::Mode),
        Some(Deed::Link(a, b)) => two(&a, &b)?.map(|(a, b)| Real::Link(a, b)),
        Some(Deed::Move(a, b)) => two(&a, &b)?.map(|(a, b)| Real::Move(a, b)),
        Some(Deed::Swap(a, b)) => two(&a, &b)?.map(|(a, b)| Real::Swap(a, b)),
    })
}

fn keep(keeper: &mut Keeper, deed: Real) -> io::Result<()> {
    match deed {
        Real::Write(path) => each(keeper, &path, Keeper::write),
        Real::Name(path) => each(keeper, &path, Keeper::touch),
        Real::Mode(path) => each(keeper, &path, Keeper::change_mode),
        Real::Link(file, name) => {
            let (file, name) = (keeper.inside(&file), keeper.inside(&name));
            if let Some(name) = &name {
                keeper.touch(name)?;
            }
            if let (Some(file), Some(name)) = (file, name) {
                keeper.note_name(&file, &name);
            }
            Ok(())
        }
        Real::Move(from, to) => moved(keeper, &from, &to),
        Real::Swap(a, b) => {
            tree(keeper, &a, &a, Keeper::touch)?;
            tree(keeper, &b, &b, Keeper::touch)?;
            tree(keeper, &a, &b, Keeper::touch)?;
            tree(keeper, &b, &a, Keeper::touch)
        }
    }
}

/// Something gets another path. A folder is not copied where what is in it can be found again.
fn moved(keeper: &mut Keeper, from: &Path, to: &Path) -> io::Result<()> {
    let is_folder = from.symlink_metadata().is_ok_and(|found| found.is_dir());
    let inside = (keeper.inside(from), keeper.inside(to));
    match (is_folder, inside) {
        (true, (Some(old), Some(new))) => {
            tree(keeper, from, from, Keeper::note_status)?;
            tree(keeper, from, to, Keeper::touch)?;
            keeper.note_move(&old, &new)
        }
        (true, _) => {
            tree(keeper, from, from, Keeper::touch)?;
            tree(keeper, from, to, Keeper::touch)
        }
        (false, (old, new)) => {
            each(keeper, from, Keeper::touch)?;
            each(keeper, to, Keeper::touch)?;
            if let (Some(old), Some(new)) = (old, new) {
                keeper.note_name(&old, &new);
            }
            Ok(())
        }
    }
}

type Keep = fn(&mut Keeper, &Path) -> io::Result<()>;

fn each(keeper: &mut Keeper, path: &Path, keep: Keep) -> io::Result<()> {
    let Some(path) = keeper.inside(path) else { return Ok(()) };
    keep(keeper, &path)
}

/// Keeps all paths below one that there are below another, and itself.
fn tree(keeper: &mut Keeper, like: &Path, at: &Path, keep: Keep) -> io::Result<()> {
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        each(keeper, &at.join(&path), keep)?;
        let there = like.join(&path);
        if there.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            let entries = fs::read_dir(there).into_iter().flatten().flatten();
            left.extend(entries.map(|entry| path.join(entry.file_name())));
        }
    }
    Ok(())
}
