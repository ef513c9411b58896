//! Checks the keys that should be in the keyring.

use quintet_kernel::port::Finding;

use crate::options::Options;

/// The findings; none if no key is expected there.
pub(super) fn check(options: &Options) -> Vec<Finding> {
    let keys = &options.keys;
    let warnings = keys.warnings.iter();
    let mut findings: Vec<Finding> =
        warnings.map(|(message, remedy)| Finding::warning("keyring", message, *remedy)).collect();
    if !keys.in_keyring.is_empty() {
        let message = format!("has the key for {}", keys.in_keyring.join(", "));
        findings.push(Finding::ok("keyring", message));
    }
    findings
}
