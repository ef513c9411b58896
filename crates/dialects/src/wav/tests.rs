//! Valid and invalid files.

use quintet_kernel::port::Audio;

use super::{bytes, parse};

#[test]
fn encoded_audio_is_parsed_again() {
    let audio = Audio { samples: vec![0, 1, -1, i16::MAX, i16::MIN], rate: 24_000 };
    assert_eq!(parse(&bytes(&audio).unwrap()).unwrap(), audio);
}

#[test]
fn channels_are_mixed() {
    let mut stereo = bytes(&Audio { samples: vec![100, 200, -50, 50], rate: 8_000 }).unwrap();
    stereo[22] = 2;
    assert_eq!(parse(&stereo).unwrap(), Audio { samples: vec![150, 0], rate: 8_000 });
}

#[test]
fn invalid_files_are_refused() {
    let good = bytes(&Audio { samples: vec![1], rate: 8_000 }).unwrap();
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] = to;
        bytes
    };
    for (bad, why) in [
        (b"no".to_vec(), "not a WAV file"),
        (good[..12].to_vec(), "no samples"),
        (changed(34, 8), "16-bit"),
        (changed(22, 0), "no channels"),
        (changed(36, b'x'), "no samples"),
        (changed(12, b'x'), "before their format"),
    ] {
        let error = parse(&bad).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    // A truncated file is read as far as possible.
    assert_eq!(parse(&good[..45]).unwrap().samples, Vec::<i16>::new());
}
