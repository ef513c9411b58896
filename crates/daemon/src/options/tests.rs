//! Options: who wins, what is understood, and what is said where something is not.

use std::io::Write as _;
use std::path::PathBuf;

use quintet_tools::sandbox::Mode;
use tempfile::NamedTempFile;

use super::layers::gather;
use super::{Options, keys};
use crate::cli::Flags;

fn read(file: &str, environment: &[(&str, &str)], flags: Flags) -> Result<Options, String> {
    let mut config = NamedTempFile::new().unwrap();
    config.write_all(file.as_bytes()).unwrap();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut environment: Vec<_> = environment.iter().map(owned).collect();
    environment.push(("HOME".into(), "/home/me".into()));
    let flags = Flags { config: Some(config.path().into()), ..flags };
    let layers = gather(&flags, &environment).map_err(|error| format!("{error:#}"))?;
    Options::understand(&layers).map_err(|error| format!("{error:#}"))
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let port = |options: Options| options.harness.unwrap().port();
    let file = "[listen]\nharness = \"127.0.0.1:2\"\n";
    let environment = [("QUINTET_LISTEN_HARNESS", "127.0.0.1:3")];
    let flags = Flags { listen: vec!["harness=127.0.0.1:4".into()], ..Flags::default() };
    assert_eq!(port(read("", &[], Flags::default()).unwrap()), 8787);
    assert_eq!(port(read(file, &[], Flags::default()).unwrap()), 2);
    assert_eq!(port(read(file, &environment, Flags::default()).unwrap()), 3);
    assert_eq!(port(read(file, &environment, flags).unwrap()), 4);
    let off = Flags { set: vec!["listen.harness=off".into()], ..Flags::default() };
    assert!(read(file, &[], off).unwrap().harness.is_none());
}

#[test]
fn variables_reach_every_key() {
    let environment = [
        ("QUINTET_APPROVAL_KINDS", "read, exec"),
        ("QUINTET_VERIFY_AUTO", "false"),
        ("QUINTET_LIMITS_STEPS", "7"),
        ("QUINTET_PROVIDERS_MY_LLM_API", "openai-chat"),
        ("QUINTET_PROVIDERS_MY_LLM_BASE_URL", "http://127.0.0.1:1/v1/"),
        ("QUINTET_SOMEBODY_ELSES", "?"),
        ("HARNESS_AUTH_TOKEN", "hush"),
    ];
    let options = read("", &environment, Flags::default()).unwrap();
    assert_eq!(
        (options.approval.kinds.len(), options.verify.auto, options.limits.steps),
        (2, false, 7)
    );
    assert_eq!(options.harness_token.as_deref(), Some("hush"));
    let provider = options.providers.iter().find(|provider| provider.name == "my_llm").unwrap();
    assert_eq!(provider.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(options.data_dir.to_str(), Some("/home/me/.local/share/quintet"));
}

#[test]
fn there_is_always_a_model() {
    let options = read("", &[], Flags::default()).unwrap();
    assert_eq!(
        (options.default_model.to_string().as_str(), options.advice.len()),
        ("demo/demo", 1)
    );
    let options = read("", &[("OPENAI_API_KEY", "sk-x")], Flags::default()).unwrap();
    assert_eq!((options.default_model.provider.as_str(), options.advice.len()), ("openai", 0));
    let file =
        "[providers.mine]\napi = \"openai-chat\"\nbase_url = \"http://x/v1\"\nmodels = [\"m\"]\n";
    let options = read(file, &[], Flags::default()).unwrap();
    assert_eq!(options.default_model.to_string(), "mine/m");
}

#[test]
fn a_model_that_was_fetched_is_used_where_none_is_configured() {
    let dir = tempfile::tempdir().unwrap();
    let file = format!("[local]\nmodels_dir = {:?}\ncontext = 1024\n", dir.path());
    assert!(read(&file, &[], Flags::default()).unwrap().unconfigured());
    std::fs::write(dir.path().join("qwen2.5-coder-1.5b.gguf"), b"").unwrap();
    let options = read(&file, &[], Flags::default()).unwrap();
    assert_eq!(options.default_model.to_string(), "local/qwen2.5-coder-1.5b");
    assert_eq!(options.local.as_ref().map(|local| local.window), Some(1024));
    let options = read(&file, &[("OPENAI_API_KEY", "sk-x")], Flags::default()).unwrap();
    assert_eq!(options.default_model.provider, "openai");
    let server = "[providers.local]\napi = \"openai-chat\"\nbase_url = \"http://x/v1\"\n";
    assert!(read(server, &[], Flags::default()).unwrap().local.is_none());
    let same = "default_model = \"local/small\"\n[providers.local]\napi = \"local\"\n";
    assert!(read(same, &[], Flags::default()).unwrap().local.is_some());
}

#[test]
fn what_is_not_understood_is_named_with_its_place() {
    let says = |file: &str, environment: &[(&str, &str)], part: &str| {
        let error = read(file, environment, Flags::default()).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    says(
        "",
        &[("QUINTET_VERIFY_AUTO", "perhaps")],
        "verify.auto must be true or false, not \"perhaps\" (QUINTET_VERIFY_AUTO)",
    );
    says("[limits]\nsteps = -1", &[], "limits.steps must be a whole number");
    says("[recovery]\npolicy = \"pray\"", &[], "recovery.policy must be one of");
    says("[patch_review]\nmode = \"auto\"", &[], "patch review is not part of this version yet");
    says("[providers.x]\napi = \"openai-chat\"", &[], "providers.x.base_url is not set");
    says("[providers.x]\nbase_url = \"http://x\"", &[], "providers.x.api is not set");
    says(
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://x\"\napi_key_env = \"NOPE\"",
        &[],
        "names NOPE, which is not set",
    );
    says(
        "[providers.x]\napi = \"openai-chat\"\nbase_url = \"http://x\"\ninputs = [\"smell\"]",
        &[],
        "there is no input \"smell\"",
    );
    says("data = 1", &[], "unknown key \"data\"");
    says("[listen.harness]\nport = 1", &[], "unknown key \"listen.harness.port\"");
}

#[test]
fn the_sandbox_is_on_unless_somebody_says_otherwise() {
    let sandbox = read("", &[], Flags::default()).unwrap().sandbox;
    assert_eq!((sandbox.mode, sandbox.network), (Mode::Prefer, false));
    assert!(sandbox.extra_read.is_empty() && sandbox.extra_write.is_empty());
    let file = "[sandbox]\nmode = \"require\"\nread = [\"/srv/data\", \"~\"]\n";
    let environment =
        [("QUINTET_SANDBOX_NETWORK", "true"), ("QUINTET_SANDBOX_WRITE", "~/.cache/go")];
    let sandbox = read(file, &environment, Flags::default()).unwrap().sandbox;
    assert_eq!((sandbox.mode, sandbox.network), (Mode::Require, true));
    assert_eq!(sandbox.extra_read, ["/srv/data", "/home/me"].map(PathBuf::from));
    assert_eq!(sandbox.extra_write, [PathBuf::from("/home/me/.cache/go")]);
    let says = |file: &str| read(file, &[], Flags::default()).unwrap_err();
    assert!(says("[sandbox]\nmode = \"on\"").contains("sandbox.mode must be one of"));
    assert!(says("[sandbox]\nread = [\"data\"]").contains("\"data\" is not an absolute path"));
}

#[test]
fn the_nearest_key_is_near() {
    assert_eq!(keys::nearest("datadir"), "data_dir");
    assert_eq!(keys::nearest("approval.ondeny"), "approval.on_deny");
    assert_eq!(keys::nearest("providers.fake.url"), "providers.fake.api");
    assert_eq!(keys::nearest("verify.command"), "verify.commands");
}
