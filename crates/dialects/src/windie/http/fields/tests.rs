//! Faults in bodies, in the words that clients know.

use super::*;

/// Reads a body and says what is wrong with it, a line each.
#[track_caller]
fn check(body: &str, look: impl Fn(&mut Fields), then: &[&str]) {
    let read = Fields::of_body(body.as_bytes()).and_then(|mut fields| {
        look(&mut fields);
        fields.whole()
    });
    let said: Vec<String> = match &read {
        Ok(()) => Vec::new(),
        Err(reply) => {
            let (status, faults) = reply.said();
            assert_eq!(status, 422);
            faults.as_array().unwrap().iter().map(line).collect()
        }
    };
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
    check("", |_| {}, &["body missing: Field required"]);
    check("{\"a\":", |_| {}, &["body.5 json_invalid: JSON decode error"]);
    let deep = "[".repeat(5000);
    check(&deep, |_| {}, &["body.128 json_invalid: JSON decode error"]);
    check("{}", |_| {}, &[]);
}

#[test]
fn texts_have_a_length_in_characters() {
    let look = |fields: &mut Fields| {
        fields.text("a", 1..=2);
        fields.maybe_text("b", 0..=2);
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
    let look = |fields: &mut Fields| {
        fields.texts("a", 1..=2, &(0..=1));
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
    let look = |fields: &mut Fields| {
        fields.maybe_integer("n", 1..=3);
        fields.maybe_number("x", 0.0..=1.0);
        fields.maybe_flag("f");
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
    let look = |fields: &mut Fields| {
        fields.object("o", |inner| {
            inner.text("a", 0..=1);
        });
        fields.maybe_objects("l", 2, |inner| {
            inner.integer("n", 0..=1);
        });
        fields.maybe_object("m", |_| {});
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
