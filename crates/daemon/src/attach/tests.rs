//! Tests of the daemon's log and of copying bytes.

use super::*;

#[test]
fn a_long_log_is_rotated() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("new/data");
    let mut log = open_log(&data).unwrap();
    log.write_all(b"before\n").unwrap();
    let start = log.seek(SeekFrom::End(0)).unwrap();
    log.write_all(b"no such provider\n").unwrap();
    assert_eq!(tail(&log, start).unwrap(), "no such provider\n");
    log.set_len(LOG_BYTES_LIMIT + 1).unwrap();
    assert_eq!(tail(&log, 0).unwrap().len() as u64, LOG_TAIL_BYTES_LIMIT);
    assert_eq!(open_log(&data).unwrap().metadata().unwrap().len(), 0);
    assert!(data.join("daemon.log.1").exists());
}

#[test]
fn bytes_are_copied_unchanged() {
    let mut copied = Vec::new();
    copy(&mut &b"a\nb\xff"[..], &mut copied).unwrap();
    assert_eq!(copied, b"a\nb\xff");
}

#[test]
fn a_data_directory_in_use_has_its_own_exit_code() {
    let in_use: anyhow::Error = StoreError::InUse("/data".into()).into();
    assert_eq!(exit_code(&in_use), ExitCode::from(EXIT_DATA_DIR_IN_USE));
    assert_eq!(exit_code(&in_use.context("opening")), ExitCode::from(EXIT_DATA_DIR_IN_USE));
    assert_eq!(exit_code(&anyhow::anyhow!("other")), ExitCode::FAILURE);
}
