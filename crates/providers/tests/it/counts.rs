//! Tests of token counts.

use quintet_kernel::model::{ModelRef, TokenCount};
use quintet_kernel::port::ModelProfiles as _;
use quintet_providers::{Providers, vendors};

#[test]
fn text_is_counted_exactly_if_the_tokenizer_is_published() {
    let providers = Providers::new(vendors().iter().map(|vendor| vendor.provider()).collect());
    let count = |model: &str| providers.count(&ModelRef::parse(model).unwrap(), "hello world");
    let exact = TokenCount { tokens: 2, exact: true };
    let guess = TokenCount { tokens: 3, exact: false };
    assert_eq!(count("openai/gpt-4o-2024-08-06"), exact);
    assert_eq!(count("groq/openai/gpt-oss-20b"), exact);
    assert_eq!(count("anthropic/claude-sonnet-4-5"), guess);
    assert_eq!(count("nobody/at-all"), guess);
}
