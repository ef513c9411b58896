//! How calls say where, and which arguments are replaced by coordinates.

use super::*;

#[test]
fn a_place_is_given_or_says_how_it_is_found() {
    let check = |arguments: Value, then: Result<Option<PlaceQuery>, &str>| {
        let then = then.map_err(String::from);
        assert_eq!(wanted(&arguments, &PLACES[0]), then, "{arguments}");
    };
    check(json!({ "x": 1, "y": 2 }), Ok(None));
    check(json!({ "find_coordinates_by": "manual", "ocr_text": "Save" }), Ok(None));
    let text = json!({ "find_coordinates_by": "ocr", "ocr_text": " Save " });
    check(text, Ok(Some(PlaceQuery::Text("Save".into()))));
    let both = json!({ "find_coordinates_by": "ocr", "ocr_text": "Save", "candidate_id": "ocr_1" });
    check(both, Ok(Some(PlaceQuery::Candidate("ocr_1".into()))));
    let why = "ocr_text or candidate_id is required when find_coordinates_by is ocr";
    check(json!({ "find_coordinates_by": "ocr", "ocr_text": " " }), Err(why));
    let seen = json!({ "find_coordinates_by": "prediction", "source_description": "a bin" });
    check(seen, Ok(Some(PlaceQuery::Description("a bin".into()))));
    let why = "source_description is required when find_coordinates_by is prediction";
    check(json!({ "find_coordinates_by": "prediction" }), Err(why));
    let drag = json!({ "drag_to_find_coordinates_by": "ocr", "drag_to_ocr_text": "Bin" });
    assert_eq!(wanted(&drag, &PLACES[1]), Ok(Some(PlaceQuery::Text("Bin".into()))));
    let why = "destination_description is required when drag_to_find_coordinates_by is prediction";
    let drag = json!({ "drag_to_find_coordinates_by": "prediction" });
    assert_eq!(wanted(&drag, &PLACES[1]), Err(why.into()));
}
