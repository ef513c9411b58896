//! Tests of streamed answers, split at any position.

use quintet_kernel::model::{Failure, FailureKind, RawToolCall};

use super::*;
use crate::decoder::Decoder;

fn streamed() -> Decoder {
    Decoder::stream(Box::<Parser>::default())
}

fn plain() -> Decoder {
    Decoder::whole(Box::<Parser>::default())
}

const GOLDEN: &str = concat!(
    ": OPENROUTER PROCESSING\r\n\r\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm \"}}]}\r\n\r\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning\":\"日本\",\"content\":null}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"für \\\"dich\\\" \"}}]}\n\n",
    "event: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"🎉\"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c1\",\"type\":\"function\",",
    "\"function\":{\"name\":\"shell\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"a\\\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"c2\",\"function\":{\"name\":\"read\"}},",
    "{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":7,",
    "\"prompt_tokens_details\":{\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":2}}}\n\n",
    "data: [DONE]\n\n",
);

/// Parses the reads; adjacent chunks of one channel are joined, because they depend on the reads.
fn read(mut decoder: Decoder, reads: &[&[u8]]) -> (Vec<Chunk>, Option<Failure>) {
    let mut all = Vec::new();
    let mut failure = None;
    for bytes in reads {
        let mut chunks = Vec::new();
        let fed = decoder.feed(bytes, &mut chunks);
        all.extend(chunks);
        if let Err(trouble) = fed {
            failure = Some(trouble.failure);
            break;
        }
    }
    if failure.is_none() {
        failure = decoder.end(&mut all).err().map(|trouble| trouble.failure);
    }
    (join(all), failure)
}

fn join(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let mut joined: Vec<Chunk> = Vec::new();
    for chunk in chunks {
        match (joined.last_mut(), chunk) {
            (Some(Chunk::Output(last, text)), Chunk::Output(channel, more)) if *last == channel => {
                text.push_str(&more);
            }
            (_, chunk) => joined.push(chunk),
        }
    }
    joined
}

fn stream(text: &str) -> (Vec<Chunk>, Option<Failure>) {
    read(streamed(), &[text.as_bytes()])
}

fn answer(text: &str) -> ModelResponse {
    match stream(text) {
        (mut chunks, None) => match chunks.pop() {
            Some(Chunk::Finished(answer)) => answer,
            other => panic!("{other:?}"),
        },
        (chunks, failure) => panic!("{chunks:?} {failure:?}"),
    }
}

fn calls(text: &str) -> Vec<(String, String, String)> {
    let calls = answer(text).calls.into_iter();
    calls.map(|call| (call.id, call.tool, call.arguments)).collect()
}

fn golden() -> Vec<Chunk> {
    let call = |id: &str, tool: &str, arguments: &str| RawToolCall {
        id: id.into(),
        tool: tool.into(),
        arguments: arguments.into(),
    };
    vec![
        Chunk::Output(Channel::Thought, "hm 日本".into()),
        Chunk::Output(Channel::Text, "für \"dich\" 🎉".into()),
        Chunk::Finished(ModelResponse::new(
            FinishReason::ToolCalls,
            vec![call("c1", "shell", "{\"a\":1}"), call("c2", "read", "")],
            Usage { input: 9, output: 7, cached: 4, reasoning: 2, ..Usage::default() },
        )),
    ]
}

#[test]
fn every_split_gives_the_same() {
    let bytes = GOLDEN.as_bytes();
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(read(streamed(), &[left, right]), (golden(), None), "split at {at}");
    }
    let single: Vec<_> = bytes.chunks(1).collect();
    assert_eq!(read(streamed(), &single), (golden(), None));
}

#[test]
fn one_read_is_one_chunk_per_channel() {
    let mut chunks = Vec::new();
    streamed().feed(GOLDEN.as_bytes(), &mut chunks).unwrap();
    assert_eq!(chunks, golden()[..2]);
}

#[test]
fn a_stream_without_an_end_is_cut() {
    let (_, failure) =
        stream("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"cho");
    assert_eq!(failure.unwrap().kind, FailureKind::Cut);
    assert_eq!(stream("").1.unwrap().kind, FailureKind::Cut);
}

#[test]
fn either_end_marker_suffices() {
    assert_eq!(
        answer("data: {\"choices\":[{\"finish_reason\":\"length\"}]}\n\n").finish,
        FinishReason::Length
    );
    assert_eq!(answer("data: [DONE]").finish, FinishReason::Stop);
    let eos = answer("data: {\"choices\":[{\"finish_reason\":\"weird\"}]}\n\ndata: {\"cho");
    assert_eq!(eos.finish, FinishReason::Other("weird".into()));
}

#[test]
fn calls_without_numbers() {
    let named = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[\
        {\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{\"}},\
        {\"function\":{\"arguments\":\"}\"}},\
        {\"id\":\"b\",\"function\":{\"name\":\"y\",\"arguments\":{\"k\":1}}},\
        {\"id\":\"a\",\"function\":{\"arguments\":\" \"}},\
        {\"function\":{\"name\":\"z\",\"arguments\":\"1\"}}]}}]}\n\ndata: [DONE]\n\n";
    let expected = [("a", "x", "{} "), ("b", "y", "{\"k\":1}"), ("", "z", "1")];
    assert_eq!(calls(named), expected.map(|(a, b, c)| (a.into(), b.into(), c.into())));
}

#[test]
fn calls_that_are_all_number_zero() {
    let zeros = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[\
        {\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"1\"}},\
        {\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"x\",\"arguments\":\"2\"}},\
        {\"index\":0,\"id\":\"b\",\"function\":{\"arguments\":\"3\"}}]},\
        \"finish_reason\":\"stop\"}]}\n\n";
    let expected = [("a", "x", "1"), ("b", "x", "23")];
    assert_eq!(calls(zeros), expected.map(|(a, b, c)| (a.into(), b.into(), c.into())));
    assert_eq!(answer(zeros).finish, FinishReason::ToolCalls);
}

#[test]
fn errors_and_malformed_events_in_the_middle() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let (chunks, failure) =
        stream(&format!("{begun}data: {{\"error\":{{\"message\":\"m\",\"code\":429}}}}\n\n"));
    assert_eq!(chunks, [Chunk::Output(Channel::Text, "a".into())]);
    assert_eq!(failure.unwrap().kind, FailureKind::RateLimited);
    let (chunks, failure) = stream(&format!("{begun}data: {{\"choices\":[\n\n"));
    assert_eq!(chunks.len(), 1);
    assert_eq!(failure.unwrap().kind, FailureKind::Malformed);
}

#[test]
fn a_plain_answer() {
    let body = "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"hi\",\
        \"refusal\":null},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1}}";
    let usage = Usage { input: 1, ..Usage::default() };
    let end = ModelResponse::new(FinishReason::Stop, Vec::new(), usage);
    let expected = vec![Chunk::Output(Channel::Text, "hi".into()), Chunk::Finished(end)];
    let (left, right) = body.as_bytes().split_at(30);
    assert_eq!(read(plain(), &[left, right]), (expected, None));
    let (_, failure) = read(plain(), &[left]);
    assert_eq!(failure.unwrap().kind, FailureKind::Malformed);
}

#[test]
fn garbage_never_panics() {
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for round in 0..5_000 {
        let mut bytes = GOLDEN.as_bytes().to_vec();
        for _ in 0..1 + round % 8 {
            let at = random() % bytes.len();
            bytes[at] = random() as u8;
        }
        bytes.truncate(random() % bytes.len());
        let reads: Vec<_> = bytes.chunks(1 + random() % 64).collect();
        read(streamed(), &reads);
        read(plain(), &reads);
    }
}

#[test]
fn different_texts_in_similar_events() {
    let texts = [
        "a",
        "b",
        "",
        "c\"d",
        "\\",
        "e\n",
        "ü",
        "日本",
        "x",
        "\u{1}",
        "\",\"content\":\"",
        "y",
        "z",
    ];
    for field in ["content", "reasoning"] {
        let event = |text: &&str| {
            let text = serde_json::to_string(text).unwrap();
            format!("data: {{\"id\":\"1\",\"choices\":[{{\"delta\":{{\"{field}\":{text}}}}}]}}\n\n")
        };
        let events: String = texts.iter().map(event).collect();
        let (chunks, _) = stream(&events);
        let channel = if field == "content" { Channel::Text } else { Channel::Thought };
        assert_eq!(chunks, [Chunk::Output(channel, texts.concat())]);
    }
    let (_, failure) = stream(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"\t\"}}]}\n\n",
    );
    assert_eq!(failure.unwrap().kind, FailureKind::Malformed);
}

#[test]
fn the_last_event_is_not_mistaken_for_another_delta() {
    let event = |text: &str, rest: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}{rest}}}]}}\n\n")
    };
    let end = ",\"finish_reason\":\"length\"";
    let text = [event("a", ""), event("b", ""), event("c", end), event("d", end)].concat();
    let (chunks, failure) = stream(&text);
    assert_eq!(
        (chunks.first(), failure),
        (Some(&Chunk::Output(Channel::Text, "abcd".into())), None)
    );
    assert_eq!(answer(&text).finish, FinishReason::Length);
}
