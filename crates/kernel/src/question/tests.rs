//! Tests of which answers fit a question.

use serde_json::{Value, json};

use super::{Question, QuestionAnswer, QuestionForm};

fn form(schema: Value) -> Question {
    let (asker, message) = ("db".into(), "Which?".into());
    Question { asker, message, form: QuestionForm::Schema(schema) }
}

/// Checks an answer to a form with all kinds of fields.
#[track_caller]
fn check(content: Value, then: Result<Value, &str>) {
    let question = form(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "minLength": 2, "maxLength": 4 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 },
            "share": { "type": "number" },
            "sure": { "type": "boolean" },
            "colour": { "type": "string", "enum": ["red", "blue"], "default": "red" },
            "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] },
            "days": { "type": "array", "maxItems": 1, "items": { "type": "string", "enum": ["mo", "tu"] } },
        },
        "required": ["name", "colour"],
    }));
    let answer = question.accept(Some(content)).map(|answer| match answer {
        QuestionAnswer::Accepted { content } => Value::Object(content),
        other => panic!("{other:?}"),
    });
    assert_eq!(answer, then.map_err(String::from));
}

#[test]
fn an_answer_fits_its_form() {
    check(json!({ "name": "Ada" }), Ok(json!({ "name": "Ada", "colour": "red" })));
    let all = json!({
        "name": "Ada", "age": 36.0, "share": 0.5, "sure": false, "colour": "blue", "size": "s", "days": ["mo"],
    });
    check(all.clone(), Ok(all));
    check(json!({}), Err("`name` needs a value"));
    check(json!([]), Err("the answer must be an object"));
    check(json!({ "name": "Ada", "more": 1 }), Err("`more` is not asked for"));
    check(json!({ "name": 1 }), Err("`name` must be text"));
    check(json!({ "name": "A" }), Err("`name` must be at least 2 characters"));
    check(json!({ "name": "Adele" }), Err("`name` must be at most 4 characters"));
    check(json!({ "name": "Ada", "age": 1.5 }), Err("`age` must be a whole number"));
    check(json!({ "name": "Ada", "age": 200 }), Err("`age` must be at most 150 in value"));
    check(json!({ "name": "Ada", "share": "1" }), Err("`share` must be a number"));
    check(json!({ "name": "Ada", "sure": "yes" }), Err("`sure` must be true or false"));
    check(
        json!({ "name": "Ada", "colour": "x" }),
        Err("`colour` must be one of \"red\", \"blue\""),
    );
    check(json!({ "name": "Ada", "size": "m" }), Err("`size` must be one of \"s\""));
    check(json!({ "name": "Ada", "days": "mo" }), Err("`days` must be a list"));
    check(
        json!({ "name": "Ada", "days": ["we"] }),
        Err("each of `days` must be one of \"mo\", \"tu\""),
    );
    check(
        json!({ "name": "Ada", "days": ["mo", "tu"] }),
        Err("`days` must be at most 1 in number"),
    );
}

#[test]
fn a_plain_yes_answers_a_question_without_required_values() {
    let accepted = |question: &Question| question.accept(None);
    let link = Question { form: QuestionForm::Url("https://a.example".into()), ..form(json!({})) };
    let empty = Ok(QuestionAnswer::Accepted { content: serde_json::Map::new() });
    assert_eq!(accepted(&form(json!({ "type": "object", "properties": {} }))), empty);
    assert_eq!(accepted(&link), empty);
    let needed = json!({ "properties": { "a": { "type": "string" } }, "required": ["a"] });
    assert_eq!(accepted(&form(needed)), Err("`a` needs a value".into()));
}

#[test]
fn a_question_is_shown_where_only_approvals_are() {
    let question = form(json!({
        "properties": {
            "env": { "type": "string", "enum": ["test", "live"], "title": "Where to" },
            "note": { "type": "string" },
        },
        "required": ["env"],
    }));
    assert_eq!(
        question.assessment().preview,
        "Which?\nenv: Where to (\"test\" | \"live\")\nnote (string, optional)"
    );
    assert_eq!(Question::from_input(&question.as_input()), Some(question));
    assert_eq!(Question::from_input(&json!({ "command": "ls" })), None);
}

#[test]
fn some_answers_can_be_chosen() {
    let labels = |schema: Value| -> Vec<String> {
        form(schema).choices().into_iter().map(|choice| choice.label).collect()
    };
    let of = |field: Value| json!({ "properties": { "a": field }, "required": ["a"] });
    assert_eq!(labels(of(json!({ "type": "boolean" }))), ["Yes", "No"]);
    assert_eq!(labels(of(json!({ "type": "string", "enum": ["x", "y"] }))), ["x", "y"]);
    let titled = json!([{ "const": "x", "title": "Ex" }]);
    assert_eq!(labels(of(json!({ "type": "string", "oneOf": titled }))), ["Ex"]);
    assert_eq!(labels(of(json!({ "type": "string" }))), [""; 0]);
    assert_eq!(labels(json!({ "properties": {} })), ["Accept"]);
}

#[test]
fn text_is_parsed_as_an_answer() {
    let of = |field: Value| form(json!({ "properties": { "a": field }, "required": ["a"] }));
    let boolean = of(json!({ "type": "boolean" }));
    assert_eq!(boolean.content_of("yes"), Some(json!({ "a": true })));
    assert_eq!(boolean.content_of("maybe"), None);
    let text = of(json!({ "type": "string" }));
    assert_eq!(text.content_of("12"), Some(json!({ "a": "12" })));
    assert_eq!(text.content_of(r#"{"a":"b"}"#), Some(json!({ "a": "b" })));
    assert_eq!(of(json!({ "type": "integer" })).content_of("12"), Some(json!({ "a": 12 })));
    assert_eq!(form(json!({ "properties": {} })).content_of("hello"), None);
}
