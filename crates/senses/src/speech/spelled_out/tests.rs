//! Tests of the spoken form of numbers, symbols and units.

use super::spelled_out;

#[track_caller]
fn check(written: &str, read: &str) {
    assert_eq!(spelled_out(written), read, "{written}");
}

#[test]
fn numbers_are_words() {
    check("The build took 42 seconds.", "The build took forty two seconds.");
    check(
        "1,250 files, 3.14 and -5",
        "one thousand two hundred fifty files, three point one four and minus five",
    );
    check(
        "in 1999, 2005 and 1800.",
        "in nineteen ninety nine, two thousand five and eighteen hundred.",
    );
    check("version 1.2.10", "version one point two point ten");
    check("the 3rd and 21st", "the third and twenty first");
    check("007 and 0.5", "zero zero seven and zero point five");
    check(
        "18446744073709551616",
        "one eight four four six seven four four zero seven three seven zero nine five five one six one six",
    );
}

#[test]
fn times_dates_amounts_and_units() {
    check("at 7:30 pm.", "at seven thirty PM.");
    check("at 9:05, 10:00 or 11:15am", "at nine oh five, ten o'clock or eleven fifteen AM");
    check("on 2024-03-05.", "on March fifth, twenty twenty four.");
    check(
        "$9.99, $1, $5k and $2.5 million",
        "nine dollars and ninety nine cents, one dollar, five thousand dollars and two point five million dollars",
    );
    check(
        "20 MB, 1 MB, 50% and 16GB",
        "twenty megabytes, one megabyte, fifty percent and sixteen gigabytes",
    );
    check("3-5 days, 1/2 and 3/4", "three to five days, one half and three fourths");
    check("the 1990s", "the nineteen nineties");
}

#[test]
fn symbols_and_mixtures() {
    check("Ctrl+C", "Ctrl plus C");
    check("R&D = fun", "R and D equals fun");
    check("xfce4-terminal", "xfce four terminal");
    check("and/or", "and slash or");
    check("e.g. Dr. Smith vs. us, etc.", "for example Doctor Smith versus us, et cetera");
    check("(see 3)", "(see three)");
    check("it’s", "it's");
}

#[test]
fn nothing_panics_on_odd_text() {
    let odd = [
        "",
        "   ",
        "$",
        "%",
        "-",
        "1-",
        "/2",
        "$.",
        ":",
        "1:",
        "½",
        "你好 👋",
        "1e999",
        "٣",
        "²",
        "3²",
    ];
    for text in odd {
        spelled_out(text);
    }
}
