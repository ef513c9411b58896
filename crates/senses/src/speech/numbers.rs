//! Numbers in words.

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] =
    ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [&str; 7] =
    ["", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion"];

/// 1234 is "one thousand two hundred thirty four".
pub(super) fn cardinal(number: u64) -> String {
    if number == 0 {
        return ONES[0].into();
    }
    let mut groups = Vec::new();
    let (mut rest, mut scale) = (number, 0);
    while rest > 0 {
        let group = rest % 1000;
        if group > 0 {
            let words = below_thousand(group);
            groups.push(if scale == 0 { words } else { format!("{words} {}", SCALES[scale]) });
        }
        (rest, scale) = (rest / 1000, scale + 1);
    }
    groups.reverse();
    groups.join(" ")
}

/// 23 is "twenty third".
pub(super) fn ordinal(number: u64) -> String {
    let words = cardinal(number);
    let (head, last) = words.rsplit_once(' ').map_or(("", &*words), |(head, last)| (head, last));
    let last = match last {
        "one" => "first".into(),
        "two" => "second".into(),
        "three" => "third".into(),
        "five" => "fifth".into(),
        "eight" => "eighth".into(),
        "nine" => "ninth".into(),
        "twelve" => "twelfth".into(),
        ten if ten.ends_with('y') => format!("{}ieth", ten.trim_end_matches('y')),
        other => format!("{other}th"),
    };
    format!("{head} {last}").trim().to_owned()
}

/// 1999 is "nineteen ninety nine", 2005 is "two thousand five".
pub(super) fn year(number: u64) -> String {
    let (high, low) = (number / 100, number % 100);
    match low {
        _ if high == 0 || high >= 100 || (high % 10 == 0 && low < 10) => cardinal(number),
        0 => format!("{} hundred", cardinal(high)),
        1..10 => format!("{} oh {}", cardinal(high), cardinal(low)),
        _ => format!("{} {}", cardinal(high), cardinal(low)),
    }
}

/// Each digit by itself.
pub(super) fn digits(text: &str) -> String {
    let words =
        text.chars().filter_map(|digit| digit.to_digit(10)).map(|digit| ONES[digit as usize]);
    words.collect::<Vec<_>>().join(" ")
}

fn below_thousand(number: u64) -> String {
    let mut words = Vec::new();
    if number >= 100 {
        words.extend([ONES[(number / 100) as usize], "hundred"]);
    }
    match number % 100 {
        0 => {}
        rest @ 1..20 => words.push(ONES[rest as usize]),
        rest => {
            words.push(TENS[(rest / 10) as usize]);
            if rest % 10 > 0 {
                words.push(ONES[(rest % 10) as usize]);
            }
        }
    }
    words.join(" ")
}
