//! What a person types after a prompt's name, and what prompts say.

use serde_json::json;

use super::*;

#[track_caller]
fn check(declared: &[(&str, bool)], typed: &str, expected: Result<Value, &str>) {
    let argument = |(name, required): &(&str, bool)| PromptArgument {
        name: (*name).into(),
        required: *required,
    };
    let declared: Vec<_> = declared.iter().map(argument).collect();
    let given = arguments(&declared, typed).map(Value::Object);
    assert_eq!(given, expected.map_err(String::from), "{typed}");
}

#[test]
fn arguments_are_typed_by_name_or_in_order() {
    let two = &[("file", true), ("style", false)];
    check(two, "a.rs", Ok(json!({ "file": "a.rs" })));
    check(two, "a.rs short and dry", Ok(json!({ "file": "a.rs", "style": "short and dry" })));
    check(two, "\"a b.rs\" dry", Ok(json!({ "file": "a b.rs", "style": "dry" })));
    check(two, "style=dry file=\"a b.rs\"", Ok(json!({ "file": "a b.rs", "style": "dry" })));
    check(two, "", Err("it needs file"));
    check(two, "style=dry", Err("it needs file"));
    // What only looks like a pair is a value.
    check(two, "x=1", Ok(json!({ "file": "x=1" })));
    check(&[("topic", true)], "don't be  brief", Ok(json!({ "topic": "don't be  brief" })));
    check(&[("topic", true)], "\"one thing\"", Ok(json!({ "topic": "one thing" })));
    check(&[], "whatever", Ok(json!({})));
}

#[test]
fn prompts_that_cannot_be_typed_are_left_out() {
    let listed = json!([
        { "name": "review", "title": "Review", "arguments": [{ "name": "file", "required": true }, 7] },
        { "name": "two words" }, { "name": "" }, { "title": "none" }, "nonsense",
    ]);
    let prompts = read(listed.as_array().unwrap());
    let file = PromptArgument { name: "file".into(), required: true };
    let review =
        ListedPrompt { name: "review".into(), description: "Review".into(), arguments: vec![file] };
    assert_eq!(prompts, [review]);
}

#[test]
fn messages_become_one() {
    let text = |role: &str, text: &str| json!({ "role": role, "content": { "type": "text", "text": text } });
    let said = |messages: Value| contents(&mut json!({ "messages": messages }));
    let plain = |texts: &[&str]| {
        Ok(texts.iter().map(|text| PromptContent::Text((*text).into())).collect::<Vec<_>>())
    };
    assert_eq!(said(json!([text("user", "a"), text("user", "b")])), plain(&["a", "b"]));
    let both = json!([text("user", "a"), text("assistant", "b")]);
    assert_eq!(said(both), plain(&["[user]", "a", "[assistant]", "b"]));
    let picture = json!({ "type": "image", "data": "AAEC", "mimeType": "image/png" });
    let Ok(contents) = said(json!([{ "role": "user", "content": picture }])) else { panic!() };
    let [PromptContent::File { name, content, .. }] = &contents[..] else { panic!("{contents:?}") };
    assert_eq!((name.as_str(), &content[..]), ("1.png", &[0, 1, 2][..]));
    assert!(said(json!("nothing")).is_err());
}
