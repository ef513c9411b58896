//! Vision by a provider's model or, without one, by the text in a picture.

mod answer;
mod by_model;
mod by_text;
mod scaled;

pub use by_model::ModelVision;
pub use by_text::OcrVision;
