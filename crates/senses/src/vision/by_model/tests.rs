//! Tests that a model receives a scaled picture, and that places in its answer are mapped back.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, RgbImage};
use quintet_testkit::scripted_model::{ScriptedCall, ScriptedModel};

use super::*;

fn picture(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let image = DynamicImage::ImageRgb8(RgbImage::new(width, height));
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

fn vision() -> (ModelVision, ScriptedModel) {
    let model = ScriptedModel::new();
    (ModelVision::new(Arc::new(model.clone()), ModelRef::parse("fake/eyes").unwrap()), model)
}

/// The size of the picture that a model was sent.
fn sent(call: &ScriptedCall) -> (u32, u32) {
    let PromptMessage::User(parts) = &*call.prompt.messages[0] else { panic!() };
    let PromptPart::Media { content, .. } = &parts[0] else { panic!() };
    let image = image::load_from_memory(content).unwrap();
    (image.width(), image.height())
}

#[tokio::test]
async fn a_large_picture_is_scaled_and_places_are_mapped_back() {
    let (vision, model) = vision();
    let looking = vision.locate(picture(3136, 1568), "the button".into(), 2);
    let answering = async {
        let call = model.asked().await;
        assert_eq!(sent(&call), (1568, 784));
        call.say(
            r#"{"scale":[1568,784],"points":[{"x":784,"y":392},{"x":1,"y":1},{"x":2,"y":2}]}"#,
        );
        call.finish();
    };
    let (seen, ()) = tokio::join!(looking, answering);
    let seen = seen.unwrap();
    let places: Vec<_> = seen.value.iter().map(|target| (target.x, target.y)).collect();
    assert_eq!((places, seen.model.as_str()), (vec![(1568, 784), (2, 2)], "fake/eyes"));
}

#[tokio::test]
async fn the_description_is_the_models_answer() {
    let (vision, model) = vision();
    let looking = vision.describe(picture(8, 4));
    let answering = async {
        let call = model.asked().await;
        assert_eq!(sent(&call), (8, 4));
        call.think("hm");
        call.say(" Black. ");
        call.finish();
    };
    let (seen, ()) = tokio::join!(looking, answering);
    assert_eq!(seen.unwrap(), VisionResult { value: "Black.".into(), model: "fake/eyes".into() });
}

#[tokio::test]
async fn an_unusable_model_is_reported() {
    let (vision, model) = vision();
    let wrong = vision.describe(b"no picture".to_vec()).await.unwrap_err();
    assert!(matches!(wrong, SenseError::BadInput(_)), "{wrong:?}");
    assert_eq!(model.count(), 0);
    let blind = vision.ready().unwrap_err().to_string();
    assert_eq!(blind, "senses.vision = fake/eyes: the model takes no pictures");
    let unknown = ModelRef::parse("unknown/x").unwrap();
    let unknown = ModelVision::new(Arc::new(model), unknown).ready().unwrap_err().to_string();
    assert_eq!(unknown, "senses.vision = unknown/x: there is no such provider");
}

#[tokio::test]
async fn invalid_answers_and_failures_are_errors() {
    let (vision, model) = vision();
    let answering = async {
        let call = model.asked().await;
        call.say("A lovely picture.");
        call.finish();
    };
    let (seen, ()) = tokio::join!(vision.locate(picture(8, 4), "x".into(), 1), answering);
    let why = seen.unwrap_err().to_string();
    assert_eq!(why, "the model gave no coordinates: \"A lovely picture.\"");
}

#[tokio::test]
async fn concurrent_requests_are_limited() {
    let (vision, _model) = vision();
    let mut waiting: Vec<_> = (0..8).map(|_| vision.describe(picture(8, 4))).collect();
    for looking in &mut waiting {
        assert!(is_pending(looking).await);
    }
    assert_eq!(vision.describe(picture(8, 4)).await, Err(SenseError::Busy));
    drop(waiting);
    assert!(is_pending(&mut vision.describe(picture(8, 4))).await);
}

/// Polls a future once; true if it waits.
async fn is_pending<T>(future: &mut BoxFuture<'_, T>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}
