//! Shrinks the box of a line to its ink.
//!
//! The network's boxes have a margin of about half a line. If the background has one colour, the
//! margin can be detected and removed.

use quintet_kernel::port::TextBox;

use crate::picture::Picture;

/// A pixel with less difference from the background is not text.
const CONTRAST_MINIMUM: u8 = 32;
/// The share of the strongest contrast from which a pixel is ink; smooth edges have less.
const CONTRAST_SHARE: f32 = 0.35;
/// A box that would lose more of its height is left unchanged, because the detection is unreliable.
const HEIGHT_SHARE: f32 = 0.3;

/// Removes the rows and columns at the border of a box that show only the background.
pub(super) fn tightened(picture: &Picture, line: TextBox) -> TextBox {
    let background = background(picture, &line);
    let contrast = |x: u32, y: u32| {
        let pixel = picture.at(x as isize, y as isize);
        pixel.iter().zip(background).map(|(a, b)| a.abs_diff(b)).max().unwrap_or(0)
    };
    let (columns, rows) = (line.x..line.x + line.width, line.y..line.y + line.height);
    let cells = || rows.clone().flat_map(|y| columns.clone().map(move |x| (x, y)));
    let strongest = cells().map(|(x, y)| contrast(x, y)).max().unwrap_or(0);
    let threshold = ((f32::from(strongest) * CONTRAST_SHARE) as u8).max(CONTRAST_MINIMUM);
    let ink = cells().filter(|(x, y)| contrast(*x, *y) >= threshold);
    let none = (u32::MAX, u32::MAX, 0, 0);
    let (left, top, right, bottom) = ink.fold(none, |(left, top, right, bottom), (x, y)| {
        (left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1))
    });
    if left >= right || ((bottom - top) as f32) < HEIGHT_SHARE * line.height as f32 {
        return line;
    }
    TextBox { x: left, y: top, width: right - left, height: bottom - top, ..line }
}

/// The most common colour at the border of a box.
fn background(picture: &Picture, line: &TextBox) -> [u8; 3] {
    let (right, bottom) = (line.x + line.width.max(1) - 1, line.y + line.height.max(1) - 1);
    let across = (line.x..=right).flat_map(|x| [(x, line.y), (x, bottom)]);
    let down = (line.y..=bottom).flat_map(|y| [(line.x, y), (right, y)]);
    let border = across.chain(down).map(|(x, y)| picture.at(x as isize, y as isize));
    let pixels: Vec<[u8; 3]> = border.collect();
    [0, 1, 2].map(|colour| {
        let mut values: Vec<u8> = pixels.iter().map(|pixel| pixel[colour]).collect();
        let middle = values.len() / 2;
        *values.select_nth_unstable(middle).1
    })
}

#[cfg(test)]
mod tests;
