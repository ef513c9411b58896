//! How much may be asked at once.

use serde_json::json;

use crate::daemon::World;

#[tokio::test]
async fn a_batch_is_not_too_long() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let batch = |calls: usize| {
        let one = json!({ "jsonrpc": "2.0", "id": 1, "method": "system.ping" }).to_string();
        format!("[{}]", vec![one; calls].join(","))
    };
    socket.send(&batch(5000)).await;
    assert_eq!(socket.frame().await.unwrap()["error"]["code"], -32600);
    socket.send(&batch(50)).await;
    assert_eq!(socket.frame().await.unwrap().as_array().unwrap().len(), 50);
}
