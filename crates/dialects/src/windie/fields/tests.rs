//! Faults in bodies, in the words that clients know.

use super::*;

/// Reads a body and says what is wrong with it, a line each.
#[track_caller]
fn check(body: &str, look: impl Fn(&Object<'_>), then: &[&str]) {
    let read = read("body", &serde_json::from_str(body).unwrap(), look);
    let faults = read.err().map(|wrong| wrong.details()).unwrap_or_default();
    let said: Vec<String> = faults.as_array().into_iter().flatten().map(line).collect();
    assert_eq!(said, then, "{body}");
}

fn line(fault: &Value) -> String {
    let place: Vec<String> = fault["loc"].as_array().unwrap().iter().map(word).collect();
    format!("{} {}: {}", place.join("."), word(&fault["type"]), word(&fault["msg"]))
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

#[test]
fn a_body_is_an_object() {
    let object = "body model_attributes_type: Input should be a valid dictionary or object to extract fields from";
    for body in ["[]", "1", "null", "\"x\""] {
        check(body, |_| {}, &[object]);
    }
    check("{}", |_| {}, &[]);
}

#[test]
fn texts_have_a_length_in_characters() {
    let look = |fields: &Object<'_>| {
        fields.needed_text("a", 1..=2);
        fields.text("b", 0..=2);
        fields.only("a b");
    };
    check("{\"a\":\"äö\",\"b\":\"\"}", look, &[]);
    check("{\"a\":\"x\",\"b\":null}", look, &[]);
    check("{}", look, &["body.a missing: Field required"]);
    check(
        "{\"a\":\"\",\"b\":\"xyz\",\"c\":1}",
        look,
        &[
            "body.a string_too_short: String should have at least 1 character",
            "body.b string_too_long: String should have at most 2 characters",
            "body.c extra_forbidden: Extra inputs are not permitted",
        ],
    );
    let none = "body.a string_type: Input should be a valid string";
    check("{\"a\":null,\"b\":\"x\"}", look, &[none]);
}

#[test]
fn lists_have_a_length_and_what_is_in_them_too() {
    let look = |fields: &Object<'_>| {
        let entries = fields.needed("a").entries(1..=2);
        entries.iter().for_each(|entry| drop(entry.text(0..=1)));
    };
    check("{\"a\":[\"\",\"x\"]}", look, &[]);
    check("{}", look, &["body.a missing: Field required"]);
    check("{\"a\":{}}", look, &["body.a list_type: Input should be a valid list"]);
    let few = "body.a too_short: List should have at least 1 item after validation, not 0";
    check("{\"a\":[]}", look, &[few]);
    let many = "body.a too_long: List should have at most 2 items after validation, not 3";
    check("{\"a\":[1,2,3]}", look, &[many]);
    let inside = "body.a.1 string_too_long: String should have at most 1 character";
    check("{\"a\":[\"x\",\"yz\"]}", look, &[inside]);
}

#[test]
fn numbers_and_flags_are_what_they_are_in_json() {
    let look = |fields: &Object<'_>| {
        fields.not_null("n").whole(1..=3);
        fields.not_null("x").number(0.0..=1.0);
        fields.not_null("f").flag();
    };
    check("{\"n\":3.0,\"x\":1,\"f\":false}", look, &[]);
    check(
        "{\"n\":\"1\",\"x\":null,\"f\":0}",
        look,
        &[
            "body.n int_type: Input should be a valid integer",
            "body.x float_type: Input should be a valid number",
            "body.f bool_type: Input should be a valid boolean",
        ],
    );
    check(
        "{\"n\":1e300,\"x\":-0.1}",
        look,
        &[
            "body.n less_than_equal: Input should be less than or equal to 3",
            "body.x greater_than_equal: Input should be greater than or equal to 0",
        ],
    );
    let part = "body.n int_from_float: Input should be a valid integer, got a number with a fractional part";
    check("{\"n\":1.5}", look, &[part]);
}

#[test]
fn what_is_inside_is_looked_at_in_its_place() {
    let look = |fields: &Object<'_>| {
        if let Some(inner) = fields.needed("o").object() {
            inner.needed_text("a", 0..=1);
        }
        fields.objects("l", 2, |inner| inner.needed("n").whole(0..=1));
        fields.object("m");
    };
    check("{\"o\":{\"a\":\"\",\"b\":1},\"l\":[{\"n\":1}],\"m\":null}", look, &[]);
    let object = "model_attributes_type: Input should be a valid dictionary or object to extract fields from";
    check(
        "{\"l\":[{\"n\":2},1],\"m\":3}",
        look,
        &[
            "body.o missing: Field required",
            "body.l.0.n less_than_equal: Input should be less than or equal to 1",
            &format!("body.l.1 {object}"),
            &format!("body.m {object}"),
        ],
    );
    let list = "body.l list_type: Input should be a valid list";
    check("{\"o\":{\"a\":\"\"},\"l\":{}}", look, &[list]);
}
