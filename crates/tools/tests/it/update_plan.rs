//! `update_plan`.

use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn a_plan_is_counted_and_checked() {
    let bench = Bench::new();
    let step = |status: &str| json!({ "step": "look", "status": status });
    let plan = json!({ "plan": [step("completed"), step("in_progress")] });
    assert_eq!(bench.tell("update_plan", plan).await, "1 of 2 steps completed");
    assert_eq!(bench.tell("update_plan", json!({ "plan": [] })).await, "0 of 0 steps completed");
    for wrong in
        [json!({}), json!({ "plan": [step("done")] }), json!({ "plan": [{ "step": "x" }] })]
    {
        let told = bench.tell("update_plan", wrong).await;
        assert!(told.starts_with("! invalid input"), "{told}");
    }
}
