//! What models read of a result.

use serde_json::json;

use super::*;

fn check(result: Value) -> (Ending, String, Vec<String>) {
    let output = output(serde_json::from_value(result).unwrap());
    let text = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Media { name, .. } => format!("<{name}>"),
        other => format!("{other:?}"),
    };
    let parts: Vec<String> = output.outcome.parts.iter().map(text).collect();
    let files = output.files.into_iter().map(|file| format!("{} {}", file.name, file.mime));
    (output.outcome.ending, parts.join("|"), files.collect())
}

#[test]
fn text_pictures_and_files_are_kept() {
    let result = json!({ "content": [
        { "type": "text", "text": "a" },
        { "type": "image", "data": "aGk=", "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "file:///x/r.txt", "text": "inside" } },
        { "type": "resource", "resource": { "uri": "file:///x/b.bin", "blob": "aGk" } },
        { "type": "resource_link", "uri": "file:///y", "name": "y" },
    ] });
    let (ending, text, files) = check(result);
    assert_eq!(ending, Ending::Succeeded);
    let said = "a\n[resource <file:///x/r.txt>]\ninside\n\
                [file 2-b.bin of type application/octet-stream, 2 bytes]\n[resource y <file:///y>]|<1.png>";
    assert_eq!(text, said);
    assert_eq!(files, ["1.png image/png", "2-b.bin application/octet-stream"]);
}

#[test]
fn structured_content_is_not_said_twice() {
    let once = json!({ "content": [{ "type": "text", "text": "{\"a\": 1}" }], "structuredContent": { "a": 1 } });
    assert_eq!(check(once).1, "{\"a\": 1}");
    let beside =
        json!({ "content": [{ "type": "text", "text": "one" }], "structuredContent": { "a": 1 } });
    assert_eq!(check(beside).1, "one\n{\"a\":1}");
    let alone = json!({ "content": [], "structuredContent": { "a": 1 } });
    assert_eq!(check(alone).1, "{\"a\":1}");
}

#[test]
fn an_error_and_nothing_are_said() {
    let error = json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true });
    assert_eq!(check(error), (Ending::Failed, "no such file".into(), vec![]));
    assert_eq!(check(json!({ "content": [] })).1, "(no output)");
}

#[test]
fn what_the_protocol_does_not_know_is_shown_as_it_is() {
    let odd = json!({ "content": [{ "type": "hologram", "x": 1 }] });
    assert!(check(odd).1.contains("hologram"));
}
