//! Pictures of all kinds are read or refused, and none takes more memory than it may.

use image::{ExtendedColorType, RgbImage};

use super::*;
use crate::windie::fields;

fn jpeg() -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let image = DynamicImage::ImageRgb8(RgbImage::new(16, 8));
    image.write_to(&mut bytes, ImageFormat::Jpeg).unwrap();
    bytes.into_inner()
}

/// A CMYK JPEG of 8 by 8 pixels, as Pillow writes it.
const CMYK: &[u8] = include_bytes!("cmyk.jpg");
/// An animated PNG of 4 by 4 pixels with two frames.
const ANIMATED: &[u8] = include_bytes!("animated.png");

#[test]
fn pictures_are_decoded_whatever_their_colors() {
    let size = |bytes: &[u8]| decode(bytes).map(|image| (image.width(), image.height()));
    assert_eq!(size(&jpeg()), Ok((16, 8)));
    assert_eq!(size(CMYK), Ok((8, 8)));
    assert_eq!(size(ANIMATED), Ok((4, 4)));
    let mut gray = Vec::new();
    let encoder = image::codecs::png::PngEncoder::new(&mut gray);
    image::ImageEncoder::write_image(encoder, &[0; 12], 3, 4, ExtendedColorType::L8).unwrap();
    assert_eq!(size(&gray), Ok((3, 4)));
}

#[test]
fn what_breaks_off_is_no_picture() {
    for whole in [jpeg(), ANIMATED.to_vec()] {
        for length in 0..whole.len() {
            // A JPEG that breaks off in its pixels is shown as far as it goes by many programs.
            let _ = decode(&whole[..length]);
        }
        assert_eq!(decode(&whole[..20]).unwrap_err(), PictureError::NotAnImage);
    }
    assert_eq!(decode(b"").unwrap_err(), PictureError::NotAnImage);
}

#[test]
fn a_picture_is_named_or_comes_along_and_an_empty_text_is_neither() {
    let check = |image: Value, then: Result<ImageInput, &str>| {
        let read = fields::read("body", &json!({ "image": image }), ImageInput::of);
        assert_eq!(read.map_err(|wrong| wrong.to_string()), then.map_err(String::from), "{image}");
    };
    let neither =
        || Err("body.image: Value error, exactly one of artifact_id or image_base64 is required");
    check(json!({ "artifact_id": "a.png" }), Ok(ImageInput::Artifact("a.png".into())));
    check(
        json!({ "artifact_id": "a.png", "image_base64": "" }),
        Ok(ImageInput::Artifact("a.png".into())),
    );
    check(json!({ "artifact_id": "", "image_base64": "x" }), Ok(ImageInput::Inline("x".into())));
    check(json!({ "artifact_id": null, "image_base64": "x" }), Ok(ImageInput::Inline("x".into())));
    check(json!({}), neither());
    check(json!({ "artifact_id": "", "image_base64": "" }), neither());
    check(json!({ "artifact_id": "a.png", "image_base64": "x" }), neither());
}
