//! Golden transcripts: replays every file of a folder and compares the result.

use std::path::Path;

/// Replays every transcript of a folder and compares it; `UPDATE_GOLDEN=1` stores the new result.
pub(crate) fn check(folder: &str, replay: impl Fn(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let expected = std::fs::read_to_string(&file).unwrap();
        let actual = replay(&expected);
        if update {
            std::fs::write(&file, &actual).unwrap();
            continue;
        }
        assert_eq!(actual, expected, "{}", file.display());
    }
}
