//! Tests of pictures that are invalid, too large, broken or unusual.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};
use quintet_kernel::port::SenseError;

use super::Picture;

fn encoded(image: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.into().write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

fn red(width: u32, height: u32) -> RgbImage {
    RgbImage::from_pixel(width, height, Rgb([200, 10, 20]))
}

#[track_caller]
fn refused(bytes: &[u8]) -> String {
    match Picture::decode(bytes) {
        Err(SenseError::BadInput(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

/// The beginning of a PNG that claims a size.
fn png_header(width: u32, height: u32) -> Vec<u8> {
    let mut png = encoded(red(1, 1), ImageFormat::Png);
    png[16..20].copy_from_slice(&width.to_be_bytes());
    png[20..24].copy_from_slice(&height.to_be_bytes());
    let checksum = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&checksum.to_be_bytes());
    png
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[test]
fn a_picture_is_decoded_whatever_its_format() {
    for format in [ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP, ImageFormat::Jpeg] {
        let picture = Picture::decode(&encoded(red(40, 30), format)).unwrap();
        assert_eq!((picture.width, picture.height), (40, 30), "{format:?}");
        let [r, g, b] = picture.at(20, 15);
        assert!(r > 190 && g < 20 && b < 30, "{format:?}: {r} {g} {b}");
    }
}

#[test]
fn invalid_pictures_are_refused() {
    assert!(refused(b"").starts_with("not an image"));
    assert!(refused(b"hello").starts_with("not an image"));
    assert!(refused(b"\x89PNG\r\n\x1a\n").starts_with("the image cannot be decoded"));
    let whole = encoded(red(300, 300), ImageFormat::Jpeg);
    refused(&whole[..40]);
    let whole = encoded(red(300, 300), ImageFormat::Png);
    assert!(refused(&whole[..whole.len() / 2]).starts_with("the image cannot be decoded"));
}

#[test]
fn a_size_is_checked_before_anything_is_decoded() {
    let reason = refused(&png_header(20_000, 20_000));
    assert!(reason.starts_with("the image is too large: 20000 x 20000 pixels"), "{reason}");
    assert!(refused(&png_header(16_000, 16_000)).starts_with("the image is too large"));
    refused(&png_header(0, 0));
    refused(&png_header(u32::MAX, 1));
}

#[test]
fn transparent_parts_get_a_contrasting_background() {
    let ink = |value: u8| {
        let mut image = RgbaImage::from_pixel(8, 8, Rgba([0, 0, 0, 0]));
        image.put_pixel(0, 0, Rgba([value, value, value, 255]));
        Picture::decode(&encoded(image, ImageFormat::Png)).unwrap()
    };
    assert_eq!((ink(10).at(0, 0), ink(10).at(4, 4)), ([10; 3], [255; 3]));
    assert_eq!((ink(250).at(0, 0), ink(250).at(4, 4)), ([250; 3], [0; 3]));
}

#[test]
fn turning_and_scaling_keep_pixels_in_place() {
    let mut pixels = vec![0; 3 * 6];
    pixels[..3].copy_from_slice(&[1, 2, 3]);
    let picture = Picture { width: 3, height: 2, pixels };
    let turned = picture.quarter_turned();
    assert_eq!((turned.width, turned.height, turned.at(0, 2)), (2, 3, [1, 2, 3]));
    assert_eq!(picture.clone().half_turned().at(2, 1), [1, 2, 3]);
    assert_eq!(Picture::filled(100, 50, 7).resized(31, 200), Picture::filled(31, 200, 7));
    assert_eq!(Picture::filled(100, 50, 7).resized(9, 5), Picture::filled(9, 5, 7));
    assert_eq!(picture.resized(6, 4).at(0, 0), [1, 2, 3]);
}
