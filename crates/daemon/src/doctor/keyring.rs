//! The keys that the keyring was to have.

use super::Finding;
use crate::options::Options;

/// Nothing to say if none was looked for.
pub(super) fn look(options: &Options) -> Vec<Finding> {
    let keys = &options.keys;
    let complaints = keys.complaints.iter();
    let mut findings: Vec<Finding> =
        complaints.map(|(what, mend)| Finding::poor("keyring", what, *mend)).collect();
    if !keys.in_keyring.is_empty() {
        let what = format!("has the key for {}", keys.in_keyring.join(", "));
        findings.push(Finding::well("keyring", what));
    }
    findings
}
