//! Parsing of messages, and the responses to them.

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, then: Expect) {
    let one = |received: &Received| match received {
        Ok(call) => format!("{:?} {} {}", call.id, call.method, call.params),
        Err(fault) => response(&fault.id, &Err(fault.error.clone())),
    };
    let shown = match read(text) {
        Err(error) => response(&Id::Null, &Err(error)),
        Ok(Incoming::One(received)) => one(&received),
        Ok(Incoming::Batch(all)) => all.iter().map(one).collect::<Vec<_>>().join("\n"),
    };
    then.assert_eq(&shown);
}

#[test]
fn requests_and_notifications() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#,
        expect![[r#"Some(Number(Number(1))) m {"a":1}"#]],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"x","method":"m","params":[1],"more":true}"#,
        expect![[r#"Some(Text("x")) m [1]"#]],
    );
    check(r#"{"jsonrpc":"2.0","method":"m"}"#, expect!["None m null"]);
    check(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, expect!["Some(Null) m null"]);
}

#[test]
fn an_invalid_request_gets_an_error_with_its_id() {
    check(
        "{",
        expect![[
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: EOF while parsing an object at line 1 column 1"}}"#
        ]],
    );
    check(
        "[]",
        expect![[
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: the batch is empty"}}"#
        ]],
    );
    check(
        "7",
        expect![[
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: a request is an object"}}"#
        ]],
    );
    check(
        r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
        expect![[
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: id must be a string, a number or null"}}"#
        ]],
    );
    check(
        r#"{"id":5,"method":"m"}"#,
        expect![[
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid Request: jsonrpc must be \"2.0\""}}"#
        ]],
    );
    check(
        r#"{"jsonrpc":"1.0","id":5,"method":"m"}"#,
        expect![[
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"Invalid Request: jsonrpc must be \"2.0\""}}"#
        ]],
    );
    check(
        r#"{"jsonrpc":"2.0","id":"a","method":1}"#,
        expect![[
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"Invalid Request: method must be a string"}}"#
        ]],
    );
    check(
        r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
        expect![[
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid Request: method must be a string"}}"#
        ]],
    );
}

#[test]
fn each_request_of_a_batch_is_parsed_on_its_own() {
    check(
        r#"[1,{"jsonrpc":"2.0","method":"m"},{"jsonrpc":"2.0","id":2,"method":"n"}]"#,
        expect![[r#"
            {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: a request is an object"}}
            None m null
            Some(Number(Number(2))) n null"#]],
    );
}

#[test]
fn encoding() {
    let id = Id::Number(3.into());
    let answers = [response(&id, &Ok(json!({"a": 1}))), notification("m", json!({"b": "\n"}))];
    expect![[r#"[{"jsonrpc":"2.0","id":3,"result":{"a":1}},{"jsonrpc":"2.0","method":"m","params":{"b":"\n"}}]"#]].assert_eq(&batch_response(&answers).unwrap());
    assert_eq!(batch_response(&[]), None);
}

#[test]
fn errors_name_the_invalid_field() {
    let params =
        json!({"a": 1, "in": {"deep": {"x": "y"}, "list": [1], "all": [{"n": "no"}]}, "no": null});
    let fields = Fields::of(&params).unwrap();
    let inner = fields.object("in").unwrap();
    let names = [
        fields.text("a").unwrap_err(),
        fields.required_text("none").unwrap_err(),
        fields.object("a").unwrap_err(),
        inner.object("deep").unwrap().unsigned("x").unwrap_err(),
        inner.text_list("list").unwrap_err(),
        inner.objects("all").unwrap().unwrap()[0].number("n").unwrap_err(),
        Fields::of(&json!([])).unwrap_err(),
        Fields::of(&json!("x")).unwrap_err(),
    ];
    let messages: Vec<_> = names.iter().map(|error| error.message.as_str()).collect();
    expect![[r#"
        Invalid params: a must be a string
        Invalid params: none must be a string
        Invalid params: a must be an object
        Invalid params: in.deep.x must be a whole number
        Invalid params: in.list must be a list of strings
        Invalid params: in.all.n must be a number
        Invalid params: params must be an object
        Invalid params: params must be an object"#]]
    .assert_eq(&messages.join("\n"));
    assert_eq!(fields.text("no").unwrap(), None);
    assert_eq!(fields.object("no").unwrap().flag("x").unwrap(), None);
}

#[test]
fn a_batch_has_a_size_limit() {
    let batch = |calls: usize| {
        let one = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
        read(&format!("[{}]", vec![one; calls].join(",")))
    };
    assert!(matches!(batch(50), Ok(Incoming::Batch(calls)) if calls.len() == 50));
    for calls in [51, 5000] {
        assert_eq!(batch(calls).unwrap_err().code, INVALID_REQUEST);
    }
    assert_eq!(read("[1,2").unwrap_err().code, PARSE_ERROR);
    assert_eq!(read("[1] 2").unwrap_err().code, PARSE_ERROR);
}
