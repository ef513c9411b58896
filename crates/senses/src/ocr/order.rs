//! Sorts lines into reading order.

use quintet_kernel::port::TextBox;

/// Orders boxes in rows from top to bottom, and from left to right in a row.
pub(super) fn reading_order(mut boxes: Vec<TextBox>) -> Vec<TextBox> {
    boxes.sort_by_key(|line| (2 * line.y + line.height, line.x));
    let mut rows: Vec<Vec<TextBox>> = Vec::new();
    for line in boxes {
        match rows.last_mut() {
            Some(row) if row.first().is_some_and(|first| is_same_row(first, &line)) => {
                row.push(line)
            }
            _ => rows.push(vec![line]),
        }
    }
    rows.iter_mut().for_each(|row| row.sort_by_key(|line| line.x));
    rows.into_iter().flatten().collect()
}

/// True if the vertical centres of two boxes differ by less than half the height of the smaller
/// one.
fn is_same_row(one: &TextBox, other: &TextBox) -> bool {
    let apart = (2 * one.y + one.height).abs_diff(2 * other.y + other.height);
    apart < one.height.min(other.height)
}

#[cfg(test)]
mod tests;
