//! Tests of answers: streamed, limited, cancelled.

use quintet_kernel::model::{Chunk, FinishReason};
use quintet_kernel::port::Models as _;

use crate::{ask, local, prompt, tool, user};

#[tokio::test]
async fn a_question_is_answered_piece_by_piece() {
    let local = local();
    let question = vec![user("What is the capital of France?")];
    let received = ask(&local, prompt(question, 64)).await.unwrap();
    assert!(received.text.contains("Paris"), "{}", received.text);
    assert!(received.pieces > 3, "{} pieces", received.pieces);
    assert_eq!(received.answer.finish, FinishReason::Stop);
    assert!(received.answer.usage.input > 10 && received.answer.usage.output > 3);
    assert!(received.notices[0].contains("smollm2-135m is being loaded"), "{:?}", received.notices);
}

#[tokio::test]
async fn an_answer_ends_at_its_limit() {
    let local = local();
    let story = vec![user("Tell me a long story about a ship.")];
    let received = ask(&local, prompt(story, 20)).await.unwrap();
    assert_eq!((received.answer.finish, received.answer.usage.output), (FinishReason::Length, 20));
}

#[tokio::test]
async fn characters_of_several_tokens_are_not_split() {
    let local = local();
    let echo = vec![user("Repeat exactly: 日本語 😀 naïve")];
    let received = ask(&local, prompt(echo, 40)).await.unwrap();
    assert!(!received.text.is_empty());
}

#[tokio::test]
async fn the_small_model_is_not_offered_tools() {
    let local = local();
    let plain = prompt(vec![user("hello")], 1);
    let mut offered = plain.clone();
    offered.tools = vec![tool()];
    let plain = ask(&local, plain).await.unwrap().answer.usage.input;
    assert_eq!(ask(&local, offered).await.unwrap().answer.usage.input, plain);
}

#[tokio::test]
async fn dropping_the_stream_ends_the_answer() {
    let local = local();
    let story = prompt(vec![user("Tell me a long story about a ship.")], 100_000);
    let mut stream = local.stream(story);
    while !matches!(stream.next().await.unwrap()[..], [Chunk::Output(..), ..]) {}
    drop(stream);
    // The thread is free again long before the story would have filled the window.
    let received = ask(&local, prompt(vec![user("Say yes.")], 8)).await.unwrap();
    assert!(!received.text.is_empty());
    assert!(received.notices.is_empty(), "the model is still loaded");
}

#[tokio::test]
async fn ten_concurrent_requests() {
    let local = local();
    let question = |n: i32| local.stream(prompt(vec![user(&format!("Say {n}."))], 8));
    let streams: Vec<_> = (0..10).map(question).collect();
    for stream in streams {
        assert!(!crate::collect(stream).await.unwrap().text.is_empty());
    }
}
