//! Vision: by a configured model of a provider, or by the text on a picture where there is none.

mod answer;
mod by_model;
mod by_text;
mod scaled;

pub use by_model::ModelVision;
pub use by_text::OcrVision;
