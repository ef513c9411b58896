//! Tests of `quintet eval` with a scripted model.

use std::path::Path;

use quintet_testkit::model_server::ModelServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::daemon::quintet;

/// A task whose prompt contains the script of the model.
fn task(folder: &Path, name: &str, set: &str, steps: &Value, rest: &str) {
    let prompt = format!("{name} {{{{script: {steps}}}}}");
    let text = format!(
        "kind = 'edit'\nset = '{set}'\nprompt = {}\nsetup = 'echo made > made.txt'\n{rest}",
        json!(prompt)
    );
    std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
}

fn tasks(folder: &Path) {
    let write = |content: &str| {
        let args = json!({ "path": "a.txt", "content": content });
        json!([{ "tools": [{ "name": "write_file", "args": args }] }, { "text": "I wrote 7." }])
    };
    let files = "files = { 'a.txt' = 'old', 'b.txt' = 'kept' }\n";
    let check = |lines: &str| format!("{files}[check]\n{lines}");
    task(
        folder,
        "done",
        "train",
        &write("new"),
        &check(
            "answer = ['7']\ncontains = { 'a.txt' = ['new'] }\ncommand = 'cat made.txt a.txt'\noutput = ['made']",
        ),
    );
    task(
        folder,
        "wrong-file",
        "train",
        &write("other"),
        &check("contains = { 'a.txt' = ['new'] }"),
    );
    task(folder, "changed", "test", &write("new"), &check("answer = ['7']\nunchanged = true"));
    // Tests that the model changed are restored before the check.
    task(
        folder,
        "cheated",
        "test",
        &write("new"),
        &check("restore = ['a.txt']\ncommand = 'grep new a.txt'"),
    );
    let broken = json!([{ "status": 400, "message": "no" }]);
    task(folder, "broken", "test", &broken, &check("contains = { 'b.txt' = ['kept'] }"));
}

#[tokio::test]
async fn success_and_failure_are_distinguished() {
    let (model, home) = (ModelServer::start().await.unwrap(), TempDir::new().unwrap());
    tasks(home.path());
    let (folder, data) = (home.path().to_str().unwrap().to_owned(), home.path().join("data"));
    let config = home.path().join("config/quintet.toml");
    let provider = format!(
        "data_dir = {data:?}\n[providers.fake]\napi = \"openai-chat\"\nbase_url = \"{}\"\napi_key = \"k\"\n",
        model.base_url()
    );
    std::fs::create_dir(home.path().join("config")).unwrap();
    std::fs::write(&config, provider).unwrap();
    let run = move |more: &[&str]| {
        let mut command = quintet(&["eval", "--model", "fake/fake", "--tasks", &folder]);
        command.arg("--config").arg(&config).args(more).output().unwrap()
    };
    let output = tokio::task::spawn_blocking({
        let run = run.clone();
        move || run(&["--json"])
    });
    let output = output.await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [broken, changed, cheated, done, wrong, totals] = &lines[..] else {
        panic!("{text}{}", String::from_utf8_lossy(&output.stderr))
    };
    assert_eq!(
        (&done["done"], &done["steps"], &done["failure"]),
        (&json!(true), &json!(2), &Value::Null)
    );
    assert!(done["input_tokens"].as_u64().unwrap() > 0 && done["seconds"].as_f64().unwrap() > 0.0);
    for (line, why) in [
        (changed, "files were changed"),
        (cheated, "the check failed"),
        (wrong, "a.txt lacks \"new\""),
        (broken, "the turn failed"),
    ] {
        let failure = line["failure"].as_str().unwrap();
        assert!(line["done"] == false && failure.contains(why), "{line}");
    }
    assert_eq!(totals["train"], json!({ "done": 1, "of": 2 }));
    assert_eq!(totals["test"], json!({ "done": 0, "of": 3 }));
    assert!(!data.exists(), "the user's own data is not touched");

    let output = tokio::task::spawn_blocking(move || {
        (run(&["--set", "train"]), run(&["--task", "nobody"]), run(&["--set", "best"]))
    });
    let (table, unknown, unset) = output.await.unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("| done | edit | train | yes | 2 |"), "{table}");
    assert!(table.contains("train: 1 of 2 (50 %)") && !table.contains("test:"), "{table}");
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no task \"nobody\""));
    assert!(String::from_utf8_lossy(&unset.stderr).contains("train, test, all or KEY=VALUE"));
}
