//! The options of the terminal: the folders of saved sessions.

use serde_json::json;

use super::*;
use crate::dialect::fixture::Fixture;

#[test]
fn sessions_are_saved_in_the_users_folder_or_the_daemons() {
    let default = folders(&Fixture::new([]).config(&[])).unwrap();
    let own = PathBuf::from("/home/me/.openagent/sessions");
    assert_eq!(default, [own, PathBuf::from("/data/saved")]);
    let configured = Fixture::new([("terminal.sessions_dir", json!("/s"))]);
    let configured = folders(&configured.config(&[])).unwrap();
    assert_eq!(configured, [PathBuf::from("/s"), PathBuf::from("/data/saved")]);
    let relative = Fixture::new([("terminal.sessions_dir", json!("s"))]);
    let error = folders(&relative.config(&[])).unwrap_err().0;
    assert!(error.contains("must be an absolute path, not \"s\" (a test)"), "{error}");
}
