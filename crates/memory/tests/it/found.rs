//! Tests that every written entry is found by its own words, at the reported lines.

use proptest::prelude::*;
use proptest::test_runner::Config;
use quintet_kernel::memory::MemoryFile;

use crate::world::World;

fn entry() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "[a-zA-Z]{1,12}",
        1 => "[0-9]{1,6}",
        1 => "[а-я]{2,8}",
        1 => "[ぁ-ん一-龠]{1,6}",
        1 => Just("é\u{301}".to_owned()),
        1 => Just("🎉".to_owned()),
        1 => "[!-/:-@]{1,4}",
    ];
    let gap = prop_oneof![8 => Just(" "), 1 => Just("\n"), 1 => Just("\n- "), 1 => Just("\n# ")];
    prop::collection::vec((word, gap), 1..30)
        .prop_map(|words| words.into_iter().flat_map(|(w, g)| [w, g.to_owned()]).collect())
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_entry_is_found(entries in prop::collection::vec((entry(), any::<bool>()), 1..6)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let world = World::new();
            for (text, daily) in &entries {
                let target = if *daily { MemoryFile::Daily } else { MemoryFile::LongTerm };
                let Ok(written) = world.write(target, text).await else { continue };
                let found = world.search_result(text, Some(target)).await.unwrap();
                let lines = written.line_start..=written.line_end;
                let here = found.iter().any(|found| {
                    found.path == written.path
                        && (lines.contains(&found.line_start) || lines.contains(&found.line_end))
                });
                assert!(here, "{text:?} at {lines:?} is not among {found:?}");
                for found in found {
                    let (first, last) = (found.line_start, found.line_end);
                    let passage = world.get(&found.path, first, last).await.unwrap();
                    assert_eq!(found.excerpt.trim(), passage.text.trim());
                }
            }
        });
    }
}
