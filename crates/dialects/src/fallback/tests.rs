//! Messages that a model refuses in part.

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
async fn submitted(message: NewMessage) -> Result<NewMessage, Error> {
    let session = |message: NewMessage| async move {
        let unknown = message.options.model.clone().map(Refusal::UnknownModel);
        let blind = (!message.files.is_empty())
            .then(|| Refusal::UnsupportedInput { model: model(), kind: MediaKind::Image });
        match unknown.or(blind) {
            Some(refusal) => Err(Error::Refused(refusal)),
            None => Ok(message),
        }
    };
    retry_reduced(message, session).await
}

#[tokio::test]
async fn only_the_refused_parts_of_a_message_are_removed() {
    let accepted = submitted(message()).await.unwrap();
    assert_eq!((accepted.options.model, accepted.files.len()), (None, 0));
    let left_out = Part::Context(PICTURES_LEFT_OUT.into());
    assert_eq!(accepted.parts, [left_out, Part::Text("look".into())]);
}

#[tokio::test]
async fn a_refusal_that_cannot_be_avoided_is_returned() {
    let refuse = |_| async { Err::<(), _>(Error::Refused(Refusal::EmptyMessage)) };
    let refused = retry_reduced(message(), refuse).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::EmptyMessage))));
    let blind = || Refusal::UnsupportedInput { model: model(), kind: MediaKind::Image };
    let refused =
        retry_reduced(message(), |_| async { Err::<(), _>(Error::Refused(blind())) }).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::UnsupportedInput { .. }))));
}
