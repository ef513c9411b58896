//! Writes numbers, times, amounts, units, symbols and abbreviations as words, so that they can be
//! pronounced.

use super::numbers::{cardinal, digits, ordinal, year};

/// Marks that stay at the ends of words.
const OPENING: &[char] = &['(', '[', '{', '"', '\'', '“', '‘'];
const CLOSING: &[char] = &['.', ',', ';', ':', '!', '?', ')', ']', '}', '"', '\'', '”', '’', '…'];

const ABBREVIATIONS: &[(&str, &str)] = &[
    ("mr.", "Mister"),
    ("mrs.", "Missus"),
    ("ms.", "Miz"),
    ("dr.", "Doctor"),
    ("prof.", "Professor"),
    ("jr.", "Junior"),
    ("sr.", "Senior"),
    ("inc.", "Incorporated"),
    ("ltd.", "Limited"),
    ("approx.", "approximately"),
    ("vs.", "versus"),
    ("vs", "versus"),
    ("etc.", "et cetera"),
    ("e.g.", "for example"),
    ("i.e.", "that is"),
    ("no.", "number"),
    ("fig.", "figure"),
    ("vol.", "volume"),
    ("w/", "with"),
    ("w/o", "without"),
    ("btw", "by the way"),
    ("ctrl", "control"),
];

const UNITS: &[(&str, &str, &str)] = &[
    ("%", "percent", "percent"),
    ("°", "degree", "degrees"),
    ("°C", "degree Celsius", "degrees Celsius"),
    ("°F", "degree Fahrenheit", "degrees Fahrenheit"),
    ("km", "kilometer", "kilometers"),
    ("cm", "centimeter", "centimeters"),
    ("mm", "millimeter", "millimeters"),
    ("kg", "kilogram", "kilograms"),
    ("mg", "milligram", "milligrams"),
    ("lb", "pound", "pounds"),
    ("lbs", "pound", "pounds"),
    ("oz", "ounce", "ounces"),
    ("ft", "foot", "feet"),
    ("ml", "milliliter", "milliliters"),
    ("mph", "mile per hour", "miles per hour"),
    ("km/h", "kilometer per hour", "kilometers per hour"),
    ("Hz", "hertz", "hertz"),
    ("kHz", "kilohertz", "kilohertz"),
    ("MHz", "megahertz", "megahertz"),
    ("GHz", "gigahertz", "gigahertz"),
    ("KB", "kilobyte", "kilobytes"),
    ("kB", "kilobyte", "kilobytes"),
    ("KiB", "kibibyte", "kibibytes"),
    ("MB", "megabyte", "megabytes"),
    ("MiB", "mebibyte", "mebibytes"),
    ("GB", "gigabyte", "gigabytes"),
    ("GiB", "gibibyte", "gibibytes"),
    ("TB", "terabyte", "terabytes"),
    ("hr", "hour", "hours"),
    ("hrs", "hour", "hours"),
    ("min", "minute", "minutes"),
    ("mins", "minute", "minutes"),
    ("s", "second", "seconds"),
    ("sec", "second", "seconds"),
    ("secs", "second", "seconds"),
    ("ms", "millisecond", "milliseconds"),
    ("px", "pixel", "pixels"),
    ("fps", "frame per second", "frames per second"),
    ("kW", "kilowatt", "kilowatts"),
    ("kWh", "kilowatt hour", "kilowatt hours"),
    ("x", "times", "times"),
];

/// Units that are also words, and count as units only directly after a number.
const ATTACHED_ONLY: &[&str] = &["s", "x", "min", "°"];

const CURRENCIES: &[(char, &str, &str)] =
    &[('$', "dollar", "cent"), ('£', "pound", "penny"), ('€', "euro", "cent")];
const MAGNITUDES: &[(&str, &str)] =
    &[("k", "thousand"), ("K", "thousand"), ("m", "million"), ("M", "million"), ("B", "billion")];
const MAGNITUDE_WORDS: &[&str] = &["hundred", "thousand", "million", "billion", "trillion"];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The text with numbers, symbols and units written as words. Punctuation stays.
pub(super) fn spelled_out(text: &str) -> String {
    let text = symbols(text);
    let chunks: Vec<&str> = text.split_whitespace().collect();
    let (mut words, mut at) = (Vec::with_capacity(chunks.len()), 0);
    while let Some(chunk) = chunks.get(at) {
        at += 1;
        if let Some(word) = abbreviation(chunk) {
            words.push(word);
            continue;
        }
        let (opening, core, closing) = parts(chunk);
        let next = chunks.get(at).filter(|_| closing.is_empty()).map(|next| parts(next));
        let next = next.filter(|(opening, ..)| opening.is_empty());
        match next.and_then(|(_, next, end)| Some((two(core, next)?, end))) {
            Some((both, end)) => {
                words.push(format!("{opening}{both}{end}"));
                at += 1;
            }
            None => words.push(format!("{opening}{}{closing}", one(core))),
        }
    }
    words.join(" ")
}

/// Replaces symbols that always stand for a word.
fn symbols(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => plain.push_str(" and "),
            '=' => plain.push_str(" equals "),
            '→' => plain.push_str(" to "),
            '×' => plain.push_str(" times "),
            '±' => plain.push_str(" plus or minus "),
            '½' => plain.push_str(" one half "),
            '~' => plain.push_str(" about "),
            '<' => plain.push_str(" less than "),
            '>' => plain.push_str(" greater than "),
            '@' => plain.push_str(" at "),
            '|' => plain.push_str(", "),
            '*' | '_' | '\\' | '^' | '`' | '•' | '™' | '®' => plain.push(' '),
            '\u{2018}' | '\u{2019}' => plain.push('\''),
            '–' => plain.push('-'),
            '—' => plain.push_str(" — "),
            letter => plain.push(letter),
        }
    }
    plain
}

fn abbreviation(chunk: &str) -> Option<String> {
    let core = chunk.trim_start_matches(OPENING);
    let opening = &chunk[..chunk.len() - core.len()];
    let known = |text: &str| {
        ABBREVIATIONS
            .iter()
            .find(|(short, _)| short.eq_ignore_ascii_case(text))
            .map(|(_, word)| *word)
    };
    if let Some(word) = known(core) {
        return Some(format!("{opening}{word}"));
    }
    let shorter = core.trim_end_matches([',', ';', ':', '!', '?', ')']);
    let closing = &core[shorter.len()..];
    known(shorter).filter(|_| !closing.is_empty()).map(|word| format!("{opening}{word}{closing}"))
}

/// The marks before a word, the word and the marks after it.
fn parts(chunk: &str) -> (&str, &str, &str) {
    let core = chunk.trim_start_matches(OPENING);
    let opening = &chunk[..chunk.len() - core.len()];
    let word = core.trim_end_matches(CLOSING);
    (opening, word, &core[word.len()..])
}

/// Two words that belong together: "20 MB", "$5 million", "7:30 pm".
fn two(first: &str, second: &str) -> Option<String> {
    if let Some(time) = time(first) {
        let half = second.to_lowercase().replace('.', "");
        return matches!(&*half, "am" | "pm").then(|| format!("{time} {}", half.to_uppercase()));
    }
    if let Some((currency, amount)) = currency(first) {
        let is_magnitude = MAGNITUDE_WORDS.contains(&second);
        return is_magnitude.then(|| format!("{} {second} {}", one(amount), plural(currency.1)));
    }
    let number = number(first)?;
    let (_, unit, units) = unit(second).filter(|(short, ..)| !ATTACHED_ONLY.contains(short))?;
    Some(format!("{number} {}", if is_one(first) { unit } else { units }))
}

/// One word without marks at its ends.
fn one(word: &str) -> String {
    if !word.contains(|letter: char| letter.is_ascii_digit()) {
        return without_digits(word);
    }
    let read = time(word)
        .or_else(|| date(word))
        .or_else(|| number(word))
        .or_else(|| money(word))
        .or_else(|| counted(word))
        .or_else(|| range(word));
    read.unwrap_or_else(|| mixed(word))
}

fn without_digits(word: &str) -> String {
    let word = if word.len() > 1 { word.replace('+', " plus ") } else { word.replace('+', "plus") };
    if word.contains('/') {
        word.split('/').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" slash ")
    } else {
        word.replace('#', " ").replace('%', " percent")
    }
}

fn time(word: &str) -> Option<String> {
    let half_at = word.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(word.len());
    let (clock, half) = word.split_at(half_at);
    let half = half.to_lowercase();
    let (hour, minute) = clock.split_once(':')?;
    let is_time = (1..=2).contains(&hour.len()) && minute.len() == 2;
    let (hour, minute): (u64, u64) = (whole(hour)?, whole(minute)?);
    if !is_time || hour > 24 || minute > 59 || !matches!(&*half, "" | "am" | "pm") {
        return None;
    }
    let minutes = match minute {
        0 => String::new(),
        1..10 => format!(" oh {}", cardinal(minute)),
        _ => format!(" {}", cardinal(minute)),
    };
    let half = if half.is_empty() { half } else { format!(" {}", half.to_uppercase()) };
    let clock = if minute == 0 && half.is_empty() { " o'clock" } else { "" };
    Some(format!("{}{minutes}{clock}{half}", cardinal(hour)))
}

/// 2024-03-05.
fn date(word: &str) -> Option<String> {
    let parts: Vec<&str> = word.split('-').collect();
    let [y, m, d] = parts[..] else { return None };
    let (day, month) = (whole(d)?, usize::try_from(whole(m)?).ok()?);
    let name = month.checked_sub(1).and_then(|month| MONTHS.get(month))?;
    (y.len() == 4 && (1..=31).contains(&day)).then_some(())?;
    Some(format!("{name} {}, {}", ordinal(day), year(whole(y)?)))
}

/// A number with nothing around it but a sign, commas and a decimal point.
fn number(word: &str) -> Option<String> {
    let (sign, word) = match word.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => ("minus ", rest),
        None => (word.strip_prefix('+').map_or("", |_| "plus "), word.trim_start_matches('+')),
    };
    let (before, after) = word.split_once('.').unwrap_or((word, ""));
    if after.contains('.') {
        let parts: Option<Vec<String>> =
            word.split('.').map(|part| whole(part).map(cardinal)).collect();
        return parts.map(|parts| format!("{sign}{}", parts.join(" point ")));
    }
    let is_year =
        before.len() == 4 && after.is_empty() && sign.is_empty() && !before.starts_with('0');
    let before = match before {
        "" if !after.is_empty() => "zero".to_owned(),
        before if before.len() > 1 && before.starts_with('0') => {
            whole(before).map(|_| digits(before))?
        }
        before if is_year => year(whole(before)?),
        before if before.len() > 18 => whole_digits(before)?,
        before => cardinal(grouped(before)?),
    };
    match after {
        "" if word.contains('.') => None,
        "" => Some(format!("{sign}{before}")),
        after => whole_digits(after).map(|after| format!("{sign}{before} point {after}")),
    }
}

fn whole(text: &str) -> Option<u64> {
    text.bytes().all(|letter| letter.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn whole_digits(text: &str) -> Option<String> {
    text.bytes().all(|letter| letter.is_ascii_digit()).then(|| digits(text))
}

/// 1,250 with its commas in place.
fn grouped(text: &str) -> Option<u64> {
    let mut groups = text.split(',');
    let first = groups.next().filter(|first| !first.is_empty())?;
    let is_grouped = first.len() <= 3 || !text.contains(',');
    (is_grouped && groups.all(|group| group.len() == 3)).then_some(())?;
    whole(&text.replace(',', ""))
}

fn is_one(number: &str) -> bool {
    matches!(number, "1" | "1.0" | "-1")
}

type Currency = (char, &'static str, &'static str);

fn currency(word: &str) -> Option<(Currency, &str)> {
    let symbol = word.chars().next()?;
    let known = CURRENCIES.iter().find(|(known, ..)| *known == symbol)?;
    Some((*known, &word[symbol.len_utf8()..]))
}

/// $9.99 and $5k.
fn money(word: &str) -> Option<String> {
    let ((_, unit, part), amount) = currency(word)?;
    if let Some((short, magnitude)) = MAGNITUDES.iter().find(|(short, _)| amount.ends_with(short)) {
        let amount = number(amount.strip_suffix(short)?)?;
        return Some(format!("{amount} {magnitude} {}", plural(unit)));
    }
    let unit_of = |amount: u64, unit: &str| match amount {
        1 => format!("one {unit}"),
        amount => format!("{} {}", cardinal(amount), plural(unit)),
    };
    match amount.split_once('.') {
        Some((whole_part, cents)) if cents.len() == 2 => {
            let (amount, cents) = (grouped(whole_part)?, whole(cents)?);
            Some(match (amount, cents) {
                (amount, 0) => unit_of(amount, unit),
                (0, cents) => unit_of(cents, part),
                (amount, cents) => {
                    format!("{} and {}", unit_of(amount, unit), unit_of(cents, part))
                }
            })
        }
        Some(_) => Some(format!("{} {}", number(amount)?, plural(unit))),
        None => Some(unit_of(grouped(amount)?, unit)),
    }
}

fn plural(unit: &str) -> String {
    if unit == "penny" { "pence".into() } else { format!("{unit}s") }
}

/// 3rd, 1990s, 20MB, 50%.
fn counted(word: &str) -> Option<String> {
    let end = word.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let (count, suffix) = word.split_at(end);
    match suffix {
        "st" | "nd" | "rd" | "th" => return grouped(count).map(ordinal),
        "s" if count.len() == 4 && count.ends_with('0') => {
            let words = year(whole(count)?);
            let decade = words.strip_suffix('y').map(|words| format!("{words}ies"));
            return Some(decade.unwrap_or_else(|| format!("{words}s")));
        }
        _ => {}
    }
    let (_, unit, units) = unit(suffix)?;
    Some(format!("{} {}", number(count)?, if is_one(count) { unit } else { units }))
}

fn unit(short: &str) -> Option<(&'static str, &'static str, &'static str)> {
    UNITS.iter().find(|(known, ..)| *known == short).copied()
}

/// 3-5 and 1/2.
fn range(word: &str) -> Option<String> {
    if let Some((from, to)) = word.split_once('-') {
        return Some(format!("{} to {}", number(from)?, number(to).or_else(|| counted(to))?));
    }
    let (above, below) = word.split_once('/')?;
    match (whole(above)?, whole(below)?) {
        (1, 2) => Some("one half".into()),
        (above, 2) => Some(format!("{} halves", cardinal(above))),
        (1, below @ 3..=10) => Some(format!("one {}", ordinal(below))),
        (above, below @ 3..=10) => Some(format!("{} {}s", cardinal(above), ordinal(below))),
        (above, below) => Some(format!("{} slash {}", cardinal(above), cardinal(below))),
    }
}

/// A word of letters and digits: each run separately, digits as words.
fn mixed(word: &str) -> String {
    let mut words = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let is_same = |letter: char| {
            letter.is_ascii_digit() == first.is_ascii_digit()
                && (letter.is_alphanumeric() || letter == '\'') == first.is_alphanumeric()
        };
        let end = rest.find(|letter| !is_same(letter)).unwrap_or(rest.len()).max(first.len_utf8());
        let (run, after) = rest.split_at(end);
        match first {
            first if first.is_ascii_digit() => {
                words.push(number(run).unwrap_or_else(|| digits(run)))
            }
            first if first.is_alphabetic() => words.push(run.to_owned()),
            _ => words.extend(run.chars().filter_map(symbol).map(str::to_owned)),
        }
        rest = after;
    }
    words.join(" ")
}

/// A symbol between letters and digits.
fn symbol(symbol: char) -> Option<&'static str> {
    match symbol {
        '.' => Some("dot"),
        '/' => Some("slash"),
        '+' => Some("plus"),
        '%' => Some("percent"),
        '$' => Some("dollar"),
        ':' => Some("colon"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
