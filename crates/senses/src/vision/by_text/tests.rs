//! Tests of vision based on text.

use super::*;

struct Fixed(Vec<TextBox>);

impl Ocr for Fixed {
    fn ready(&self) -> Result<(), SenseError> {
        Ok(())
    }

    fn read(&self, _: Vec<u8>) -> BoxFuture<'_, Result<RecognizedText, SenseError>> {
        let lines = self.0.clone();
        Box::pin(async move { Ok(RecognizedText { width: 640, height: 480, lines }) })
    }
}

fn vision(texts: &[&str]) -> OcrVision {
    let line = |(n, text): (u32, &&str)| TextBox {
        text: (*text).into(),
        confidence: 0.9,
        x: 10 * n,
        y: 0,
        width: 4,
        height: 2,
    };
    OcrVision::new(Arc::new(Fixed((0..).zip(texts).map(line).collect())))
}

#[tokio::test]
async fn a_description_states_its_source() {
    let seen = vision(&["Save", "Can\"cel"]).describe(Vec::new()).await.unwrap();
    assert_eq!(seen.model, "ocr");
    assert_eq!(
        seen.value,
        "No vision model is configured, so this is only what OCR read. The picture is 640 by 480 \
         pixels. It has 2 lines of text:\n- \"Save\" at (2, 1)\n- \"Can\\\"cel\" at (12, 1)"
    );
    let nothing = vision(&[]).describe(Vec::new()).await.unwrap().value;
    assert!(nothing.ends_with("No text was found on it."), "{nothing}");
}

#[tokio::test]
async fn quoted_text_is_found() {
    let vision = vision(&["Save as", "Save", "SAVE", "Print"]);
    let found = async |description: &str, limit| {
        let found = vision.locate(Vec::new(), description.into(), limit).await;
        found.map(|seen| seen.value.iter().map(|it| it.x).collect::<Vec<_>>())
    };
    assert_eq!(found("the button \"save\"", 5).await, Ok(vec![12, 22]));
    assert_eq!(found("the button \u{201c}save\u{201d}", 1).await, Ok(vec![12]));
    assert_eq!(found("the user's button 'Print'", 5).await, Ok(vec![32]));
    assert_eq!(found("\"Open\"", 5).await, Ok(vec![]));
    let refused = found("the user's orange button", 5).await.unwrap_err();
    assert_eq!(refused, SenseError::BadInput(NO_MODEL.into()));
}
