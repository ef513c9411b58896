//! Tests of the table of models.

use super::{all, default, find};

#[test]
fn every_row_can_be_downloaded_and_verified() {
    for weights in all() {
        let file = &weights.file;
        let pieces: u64 = file.packages.iter().map(|package| package.size).sum();
        assert_eq!(pieces, file.size, "the pieces of {} make up its file", weights.name);
        assert_eq!(file.sha256.len(), 64);
        assert!(file.hub.as_ref().is_some_and(|hub| hub.starts_with("https://")));
    }
}

#[test]
fn names_and_aliases_lead_to_one_row_each() {
    let named = |weights: &super::Weights| [vec![weights.name.clone()], weights.aliases.clone()];
    let mut names: Vec<String> = all().iter().flat_map(named).flatten().collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    assert_eq!(find("small").map(|weights| weights.name.as_str()), Some("smollm2-135m"));
    assert!(default().tools);
    assert!(find("nothing").is_none());
}
