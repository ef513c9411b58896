//! The options of the terminal: where sessions may be saved.

use serde_json::json;

use super::*;
use crate::dialect::fixture::Fixture;

#[test]
fn sessions_are_saved_in_the_users_folder_or_the_daemons() {
    let plain = folders(&Fixture::new([]).config(&[])).unwrap();
    let own = PathBuf::from("/home/me/.openagent/sessions");
    assert_eq!(plain, [own, PathBuf::from("/data/saved")]);
    let named = Fixture::new([("terminal.sessions_dir", json!("/s"))]);
    let named = folders(&named.config(&[])).unwrap();
    assert_eq!(named, [PathBuf::from("/s"), PathBuf::from("/data/saved")]);
    let relative = Fixture::new([("terminal.sessions_dir", json!("s"))]);
    let error = folders(&relative.config(&[])).unwrap_err().0;
    assert!(error.contains("must be an absolute path, not \"s\" (a test)"), "{error}");
}
