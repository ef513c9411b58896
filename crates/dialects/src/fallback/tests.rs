//! What is left of a message that a model refuses.

use quintet_kernel::command::{NewAttachment, TurnStart};
use quintet_kernel::event::TurnOptions;
use quintet_kernel::message::Role;
use quintet_kernel::model::ModelRef;
use quintet_kernel::{BlobId, Refusal};

use super::*;

fn model() -> ModelRef {
    ModelRef::parse("gone/model").unwrap()
}

fn message() -> NewMessage {
    let options = TurnOptions { model: Some(model()), ..TurnOptions::default() };
    let blob = BlobId::parse("b1").unwrap();
    let upload = NewAttachment { name: "a.png".into(), mime: "image/png".into(), blob, size: 7 };
    let text = vec![Part::Text("look".into())];
    let files = vec![(MediaKind::Image, upload)];
    NewMessage { files, ..NewMessage::new(Role::User, text, TurnStart::Now, options) }
}

/// Submits the message to a session that refuses an unknown model and pictures.
async fn submitted(say: NewMessage) -> Result<NewMessage, Error> {
    let session = |say: NewMessage| async move {
        let unknown = say.options.model.clone().map(Refusal::UnknownModel);
        let blind = (!say.files.is_empty())
            .then(|| Refusal::UnsupportedInput { model: model(), kind: MediaKind::Image });
        match unknown.or(blind) {
            Some(refusal) => Err(Error::Refused(refusal)),
            None => Ok(say),
        }
    };
    until_taken(say, session).await
}

#[tokio::test]
async fn a_message_loses_what_its_model_refuses_and_no_more() {
    let taken = submitted(message()).await.unwrap();
    assert_eq!((taken.options.model, taken.files.len()), (None, 0));
    let left_out = Part::Context(PICTURES_LEFT_OUT.into());
    assert_eq!(taken.parts, [left_out, Part::Text("look".into())]);
}

#[tokio::test]
async fn a_refusal_that_nothing_helps_against_is_passed_on() {
    let refuse = |_| async { Err::<(), _>(Error::Refused(Refusal::EmptyMessage)) };
    let refused = until_taken(message(), refuse).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::EmptyMessage))));
    let blind = || Refusal::UnsupportedInput { model: model(), kind: MediaKind::Image };
    let refused = until_taken(message(), |_| async { Err::<(), _>(Error::Refused(blind())) }).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::UnsupportedInput { .. }))));
}
