//! What happens between the look at everything and what is done.

use std::fs;

use quintet_kernel::port::Body;
use tempfile::TempDir;

use super::locks::OURS;
use super::*;
use crate::folders::digest;

/// Where git is kept out.
const LOCK: &str = ".git/index.lock";

/// A folder with a repository in it, as far as that can be told.
fn workspace() -> TempDir {
    let root = TempDir::new().unwrap();
    for folder in [".git/objects/ab", ".git/refs"] {
        fs::create_dir_all(root.path().join(folder)).unwrap();
    }
    for (path, text) in [(".git/HEAD", "new"), (".git/objects/ab/c", "new"), ("z", "new")] {
        fs::write(root.path().join(path), text).unwrap();
    }
    root
}

fn content(shape: Shape, body: Option<Body>) -> Content {
    Content { body, size: 3, mode: None, shape }
}

fn file(text: &str) -> Option<Content> {
    Some(content(Shape::File, Some(Body::Bytes(text.into()))))
}

fn folder(path: &str) -> Changed {
    let after = Some(content(Shape::Folder, None));
    Changed { path: path.into(), before: None, after }
}

fn rewritten(path: &str) -> Changed {
    Changed { path: path.into(), before: file("old"), after: file("new") }
}

/// Undoes changes, while somebody does something right after everything was looked at.
fn put_back_while(
    root: &Path,
    changes: &[Changed],
    meanwhile: impl FnOnce(),
) -> Result<(), String> {
    let changes: Vec<_> = changes.iter().map(|it| (Path::new(&it.path), it)).collect();
    let around = Around::new(root, &changes);
    let plan = Plan::new(&around, &changes)?;
    let mut locks = plan.lock(&around)?;
    meanwhile();
    around.carry_out(&plan.steps, &mut locks)
}

#[test]
fn what_somebody_does_meanwhile_is_not_overwritten() {
    for goes in [false, true] {
        let root = workspace();
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        let mut changes = [rewritten(".git/HEAD"), rewritten("z")];
        if goes {
            changes[1].before = None;
        }
        let meanwhile = || fs::write(root.path().join(".git/HEAD"), "mine").unwrap();
        let refused = "nothing was changed: .git/HEAD was changed meanwhile: something else is \
                       checked out";
        let result = put_back_while(root.path(), &changes, meanwhile);
        assert_eq!(result, Err(refused.to_owned()));
        assert_eq!((read(".git/HEAD"), read("z")), ("mine".to_owned(), "new".to_owned()));
        assert!(!root.path().join(LOCK).exists());
    }
}

#[test]
fn git_is_kept_out_meanwhile() {
    let root = workspace();
    let lock = root.path().join(LOCK);
    let changes = [rewritten(".git/HEAD")];
    let meanwhile = || {
        assert_eq!(fs::read_to_string(&lock).unwrap(), OURS);
        // Nor does another undo take it for one that was left.
        let refused = "nothing was changed: git is at work: .git/index.lock is there";
        assert_eq!(put_back(root.path(), &changes), Err(refused.to_owned()));
        assert!(lock.exists());
    };
    assert_eq!(put_back_while(root.path(), &changes, meanwhile), Ok(()));
    assert!(!lock.exists());
}

#[test]
fn what_a_crash_left_of_an_undo_does_not_stop_it() {
    let root = workspace();
    fs::write(root.path().join(LOCK), OURS).unwrap();
    assert_eq!(put_back(root.path(), &[rewritten(".git/HEAD")]), Ok(()));
    assert_eq!(fs::read_to_string(root.path().join(".git/HEAD")).unwrap(), "old");
    assert!(!root.path().join(LOCK).exists());
}

/// A repository that is new as a whole, and a file.
fn new_repository() -> Vec<Changed> {
    let hash = Body::Hash(digest(&b"new"[..]).unwrap());
    let object = Some(content(Shape::File, Some(hash)));
    let head = Changed { before: None, ..rewritten(".git/HEAD") };
    let object = Changed { path: ".git/objects/ab/c".into(), before: None, after: object };
    let [git, objects, ab, refs] =
        [".git", ".git/objects", ".git/objects/ab", ".git/refs"].map(folder);
    vec![git, head, objects, ab, object, refs, rewritten("z")]
}

#[test]
fn what_cannot_be_brought_back_goes_last() {
    let root = workspace();
    let meanwhile = || fs::write(root.path().join("z"), "mine").unwrap();
    let result = put_back_while(root.path(), &new_repository(), meanwhile);
    assert_eq!(result, Err("nothing was changed: z was changed meanwhile".to_owned()));
    let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
    assert_eq!((read(".git/objects/ab/c"), read(".git/HEAD")), ("new".into(), "new".into()));
}

#[test]
fn a_new_repository_goes_with_its_lock() {
    let root = workspace();
    fs::write(root.path().join(LOCK), OURS).unwrap();
    assert_eq!(put_back(root.path(), &new_repository()), Ok(()));
    assert!(!root.path().join(".git").exists());
    assert_eq!(fs::read_to_string(root.path().join("z")).unwrap(), "old");
}

#[test]
fn what_something_is_to_come_in_the_place_of_goes_before() {
    let root = workspace();
    let mut changes = new_repository();
    changes[0].before = file("old");
    assert_eq!(put_back_while(root.path(), &changes, || {}), Ok(()));
    assert_eq!(fs::read_to_string(root.path().join(".git")).unwrap(), "old");
}

#[test]
fn a_folder_is_closed_after_what_is_in_it_went() {
    let mut changes = new_repository();
    let closed = |mode| Some(Content { mode: Some(mode), ..content(Shape::Folder, None) });
    changes[2] = Changed { before: closed(0o555), after: closed(0o755), ..changes[2].clone() };
    let mut plan = Plan::default();
    for Changed { path, before, after } in &changes[2..5] {
        plan.steps.extend(halves(Path::new(path), after.clone(), before.clone()));
    }
    plan.order();
    let order: Vec<_> = plan.steps.iter().map(|step| step.path).collect();
    let expected = [".git/objects/ab/c", ".git/objects/ab", ".git/objects"];
    assert_eq!(order, expected.map(Path::new));
}
