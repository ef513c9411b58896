//! Memory of a workspace, as the page shows it.

use std::path::Path;

use quintet_kernel::memory::{LineRange, MemoryError, MemoryQuery};
use quintet_kernel::port::Memory;
use serde_json::{Value, json};

/// The file of long-term notes.
const LONG_TERM: &str = "memory/MEMORY.md";

/// The passages that match a query or, without one, the long-term notes.
pub(super) async fn read(
    memory: &dyn Memory,
    root: &Path,
    text: String,
) -> Result<Value, MemoryError> {
    if text.trim().is_empty() {
        let passages = match memory.get(root, LONG_TERM, LineRange::ALL).await {
            Ok(file) => {
                vec![json!({ "path": file.path, "line": file.line_start, "text": file.text })]
            }
            Err(MemoryError::NotFound(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        return Ok(json!({ "passages": passages }));
    }
    let found = memory.search(root, MemoryQuery { text, kind: None, limit: None }).await?;
    let passages = found.passages.iter().map(|passage| {
        json!({ "path": passage.path, "line": passage.line_start, "text": passage.excerpt })
    });
    Ok(json!({ "passages": passages.collect::<Vec<_>>(), "note": found.method.reason() }))
}
