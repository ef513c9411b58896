//! Tests of answers as models write them, and of the places in them.

use super::*;

/// The places of an answer about a picture of 2000 by 1000 pixels that was sent as 1000 by 500.
fn places(model: &str, text: &str) -> String {
    let sizes = Sizes { sent: (1000, 500), original: (2000, 1000) };
    match targets(text, sizes, CoordinateStyle::of(model)) {
        Ok(targets) => {
            let shown = targets.iter().map(|target| format!("{},{}", target.x, target.y));
            shown.collect::<Vec<_>>().join(" ")
        }
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn json_in_pixels_is_mapped_to_the_original() {
    let check = |text: &str, then: &str| assert_eq!(places("some-model", text), then, "{text}");
    check(r#"{"points":[{"x":100,"y":50,"label":"Save"}]}"#, "200,100");
    check("Here it is:\n```json\n{\"points\": [{\"x\": 100.5, \"y\": 50}]}\n```", "201,100");
    check(r#"[{"x":1,"y":2},{"x":3,"y":4}]"#, "2,4 6,8");
    check(r#"{"x":999,"y":499}"#, "1998,998");
    check(r#"{"x":1000,"y":500}"#, "1999,999");
    check(r#"[{"bbox_2d":[100,50,200,150],"label":"x"}]"#, "300,200");
    check(r#"{"point_2d":[10,20]}"#, "20,40");
    check(r#"{"coordinates":{"x":10,"y":20}}"#, "20,40");
    check("[10, 20]", "20,40");
    check(r#"{"thought":[1],"points":[{"point":[10,20]}]}"#, "20,40");
}

#[test]
fn the_scale_is_stated_or_derived_from_the_numbers() {
    let check = |text: &str, then: &str| assert_eq!(places("some-model", text), then, "{text}");
    check(r#"{"points":[{"x":0.5,"y":0.25}]}"#, "1000,250");
    check(r#"{"points":[{"x":1,"y":0.5}]}"#, "1999,500");
    check(r#"{"points":[{"x":0,"y":1}]}"#, "0,2");
    check(r#"{"points":[{"x":500,"y":750}]}"#, "1000,750");
    check(r#"{"scale":[1000,1000],"points":[{"x":500,"y":250}]}"#, "1000,250");
    check(r#"{"scale":[1000,500],"points":[{"x":500,"y":250}]}"#, "1000,500");
    check(r#"{"scale":[0,0],"points":[{"x":500,"y":250}]}"#, "1000,500");
    check(r#"{"scale":[1000,500],"points":[{"x":500,"y":750}]}"#, "1000,750");
}

#[test]
fn families_have_their_own_coordinate_styles() {
    let gemini = |text: &str| places("gemini-2.5-pro", text);
    assert_eq!(gemini(r#"[{"point":[250,500],"label":"Save"}]"#), "1000,250");
    assert_eq!(gemini(r#"[{"box_2d":[200,400,300,600]}]"#), "1000,250");
    assert_eq!(gemini(r#"{"points":[{"x":500,"y":250}]}"#), "1000,250");
    assert_eq!(places("Qwen3-VL-8B", r#"{"point_2d":[500,250]}"#), "1000,250");
    assert_eq!(places("qwen2.5-vl", r#"{"point_2d":[500,250]}"#), "1000,500");
}

#[test]
fn tags_and_pairs_are_read() {
    let check = |text: &str, then: &str| assert_eq!(places("some-model", text), then, "{text}");
    check("<point>500 250</point>", "1000,250");
    check(r#"<point x="50.0" y="25" alt="Save">Save</point>"#, "1000,250");
    check("click(start_box='<|box_start|>(100,50)<|box_end|>')", "200,100");
    check("The button is at (x=100, y=50).", "200,100");
    check("It is at (100, 50), not at (10 px, 20 px).", "200,100 20,40");
    check("(0.5, 0.5)", "1000,500");
}

#[test]
fn no_match_is_no_error_and_an_invalid_answer_is_one() {
    let check = |text: &str, then: &str| assert_eq!(places("some-model", text), then, "{text}");
    check(r#"{"points":[]}"#, "");
    check("[]", "");
    check(r#"{"found":false}"#, "");
    check("There is no such button: not found.", "");
    check(
        "I see a lovely picture.",
        "! the model gave no coordinates: \"I see a lovely picture.\"",
    );
    check("", "! the model gave no coordinates: \"\"");
    check(
        r#"{"points":[{"x":NaN,"y":1}]}"#,
        r#"! the model gave no coordinates: "{\"points\":[{\"x\":NaN,\"y\":1}]}""#,
    );
    check("(nan, inf)", "! the model gave no coordinates: \"(nan, inf)\"");
    let far = "! the model gave a place that is not on the picture: (5000, 1)";
    check(r#"{"points":[{"x":5000,"y":1}]}"#, far);
    let before = "! the model gave a place that is not on the picture: (-300, 1)";
    check(r#"{"points":[{"x":-300,"y":1}]}"#, before);
    check(r#"{"points":[{"x":-1,"y":1}]}"#, "0,2");
    check(
        &"[".repeat(50_000),
        &format!("! the model gave no coordinates: {}", excerpt(&"[".repeat(50_000))),
    );
}

#[test]
fn labels_and_confidence_are_returned() {
    let sizes = Sizes { sent: (10, 10), original: (10, 10) };
    let text = r#"{"points":[{"x":1,"y":2,"label":"Save","confidence":7}]}"#;
    let targets = targets(text, sizes, CoordinateStyle::of("x")).unwrap();
    assert_eq!((targets[0].label.as_deref(), targets[0].confidence), (Some("Save"), Some(1.0)));
}
