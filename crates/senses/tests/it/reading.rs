//! Tests of text and boxes in pictures that `screens.py` drew.

use std::collections::HashMap;
use std::path::Path;

use quintet_kernel::port::{Ocr as _, RecognizedText, SenseError, TextBox};
use quintet_senses::{LocalOcr, Settings};
use serde_json::Value;

use crate::settings;

/// The overlap of two boxes: the shared area divided by the total area.
fn overlap(found: &TextBox, line: &Value) -> f64 {
    let number = |key: &str| line[key].as_f64().unwrap();
    let (x, y, width, height) = (number("x"), number("y"), number("width"), number("height"));
    let (left, top) = (f64::from(found.x), f64::from(found.y));
    let (right, bottom) = (left + f64::from(found.width), top + f64::from(found.height));
    let across = (right.min(x + width) - left.max(x)).max(0.0);
    let down = (bottom.min(y + height) - top.max(y)).max(0.0);
    let area = (right - left) * (bottom - top) + width * height - across * down;
    across * down / area
}

/// The edit distance of two texts.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (n, letter) in from.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], n + 1);
        for (m, other) in to.iter().enumerate() {
            let change = corner + usize::from(letter != *other);
            corner = row[m + 1];
            row[m + 1] = change.min(row[m] + 1).min(corner + 1);
        }
    }
    row[to.len()]
}

async fn read(ocr: &LocalOcr, name: &str) -> RecognizedText {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/screens");
    ocr.read(std::fs::read(folder.join(name)).unwrap()).await.unwrap()
}

/// The share of correct letters, and the least and the mean overlap of boxes.
fn compare(found: &RecognizedText, lines: &[Value]) -> (f64, f64, f64) {
    let (mut letters, mut wrong, mut overlaps) = (0, 0, Vec::new());
    for line in lines {
        let text = line["text"].as_str().unwrap();
        let best = found.lines.iter().max_by(|a, b| overlap(a, line).total_cmp(&overlap(b, line)));
        let best = best.filter(|best| overlap(best, line) > 0.2);
        let edits = best.map_or(text.chars().count(), |best| edits(&best.text, text));
        if edits > 0 {
            eprintln!("{text:?} was read as {:?}", best.map(|best| &best.text));
        }
        letters += text.chars().count();
        wrong += edits;
        overlaps.push(best.map_or(0.0, |best| overlap(best, line)));
    }
    let least = overlaps.iter().copied().fold(1.0, f64::min);
    let mean = overlaps.iter().sum::<f64>() / overlaps.len() as f64;
    (1.0 - wrong as f64 / letters as f64, least, mean)
}

#[tokio::test]
async fn screens_are_read() {
    let screens: HashMap<String, Vec<Value>> =
        serde_json::from_str(include_str!("screens/screens.json")).unwrap();
    let ocr = LocalOcr::new(settings());
    assert_eq!(ocr.ready(), Ok(()));
    for (name, right) in [
        ("light.png", 0.99),
        ("light.jpg", 0.99),
        ("dark.png", 0.99),
        ("turned.png", 0.98),
        ("quarter.png", 0.99),
        ("cmyk.jpg", 0.99),
        ("film.gif", 0.99),
        ("table.png", 0.98),
    ] {
        let (found, lines) = (read(&ocr, name).await, &screens[name]);
        let (letters, least, mean) = compare(&found, lines);
        eprintln!(
            "{name}: {:.2} % of letters, overlap {least:.2}, mean {mean:.2}",
            letters * 100.0
        );
        assert!(letters >= right, "{name}: {letters} of letters");
        assert!(found.lines.len() <= lines.len() + 2, "{name}: {} lines", found.lines.len());
        assert!(mean >= 0.8, "{name}: boxes overlap by {mean}");
        for line in &found.lines {
            assert!(line.x + line.width <= found.width && line.y + line.height <= found.height);
            assert!((0.5..=1.0).contains(&line.confidence), "{line:?}");
        }
    }
}

#[tokio::test]
async fn lines_are_in_reading_order() {
    let found = read(&LocalOcr::new(settings()), "light.png").await;
    assert_eq!((found.width, found.height), (1000, 640));
    let place = |text: &str| found.lines.iter().position(|line| line.text == text);
    let order = ["File", "Help", "Project settings", "Proxy", "Save changes", "Cancel"];
    let places: Vec<usize> = order.map(|text| place(text).unwrap()).into();
    assert!(places.is_sorted(), "{places:?}");
}

#[tokio::test]
async fn invalid_pictures_are_refused() {
    let ocr = LocalOcr::new(settings());
    assert!(matches!(ocr.read(b"hello".to_vec()).await, Err(SenseError::BadInput(_))));
    let dir = tempfile::tempdir().unwrap();
    let ocr = LocalOcr::new(Settings { models_dir: dir.path().into(), ..settings() });
    assert_eq!(ocr.read(Vec::new()).await, Err(SenseError::MissingWeights("ocr")));
}

#[tokio::test]
async fn pictures_of_any_shape_are_read() {
    let ocr = LocalOcr::new(settings());
    for (width, height) in [(1, 1), (1, 300), (3000, 2), (12, 9), (64, 2100)] {
        let mut png = std::io::Cursor::new(Vec::new());
        let picture = image::RgbImage::from_pixel(width, height, image::Rgb([255; 3]));
        picture.write_to(&mut png, image::ImageFormat::Png).unwrap();
        let found = ocr.read(png.into_inner()).await.unwrap();
        assert_eq!((found.width, found.height, found.lines.len()), (width, height, 0));
    }
}
