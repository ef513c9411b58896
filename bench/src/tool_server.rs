//! A small MCP server on standard input and output with one tool, to measure the cost of many
//! servers.

use std::io::{BufRead as _, Write as _};

use anyhow::Result;
use serde_json::{Value, json};

/// Answers requests until standard input ends.
pub(crate) fn serve() -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        if request.get("id").is_none() {
            continue;
        }
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "bench", "version": "1" },
            }),
            Some("tools/list") => {
                let text = json!({ "type": "string", "description": "The text." });
                let schema = json!({ "type": "object", "properties": { "text": text } });
                let tool = json!({ "name": "echo", "description": "Says the same.", "inputSchema": schema });
                json!({ "tools": [tool] })
            }
            _ => json!({ "content": [{ "type": "text", "text": "done" }] }),
        };
        writeln!(stdout, "{}", json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))?;
        stdout.flush()?;
    }
    Ok(())
}
