//! Tests of options: precedence, parsing and error messages.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use quintet_kernel::policy::{Action, ReviewMode};
use quintet_kernel::port::{ServerSandbox, ToolTransport};
use quintet_kernel::tool::ToolKind;
use quintet_providers::Api;
use quintet_tools::sandbox::Mode;
use tempfile::NamedTempFile;

use super::layers::load;
use super::{ListenAddress, Options, keys};
use crate::cli::Flags;

fn read(file: &str, environment: &[(&str, &str)], flags: Flags) -> Result<Options, String> {
    let mut config = NamedTempFile::new().unwrap();
    config.write_all(file.as_bytes()).unwrap();
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut environment: Vec<_> = environment.iter().map(owned).collect();
    environment.push(("HOME".into(), "/home/me".into()));
    let flags = Flags { config: Some(config.path().into()), ..flags };
    let layers = load(&flags, &environment).map_err(|error| format!("{error:#}"))?;
    Options::parse(&layers).map_err(|error| format!("{error:#}"))
}

fn address(options: &Options, listener: &str) -> Option<SocketAddr> {
    let found = options.listeners.iter().find(|found| found.spec.name == listener)?;
    match found.place {
        ListenAddress::Tcp(address) => Some(address),
        ListenAddress::Unix(_) => None,
    }
}

#[test]
fn flags_win_over_environment_over_file_over_defaults() {
    let port = |options: Options| address(&options, "harness").unwrap().port();
    let file = "[listen]\nharness = \"127.0.0.1:2\"\n";
    let environment = [("QUINTET_LISTEN_HARNESS", "127.0.0.1:3")];
    let flags = Flags { listen: vec!["harness=127.0.0.1:4".into()], ..Flags::default() };
    assert_eq!(port(read("", &[], Flags::default()).unwrap()), 8787);
    assert_eq!(port(read(file, &[], Flags::default()).unwrap()), 2);
    assert_eq!(port(read(file, &environment, Flags::default()).unwrap()), 3);
    assert_eq!(port(read(file, &environment, flags).unwrap()), 4);
    let off = Flags { set: vec!["listen.harness=off".into()], ..Flags::default() };
    assert_eq!(address(&read(file, &[], off).unwrap(), "harness"), None);
    let variable = [("JARVIS_GENERAL_PORT", "9100")];
    let options = read("", &variable, Flags::default()).unwrap();
    assert_eq!(address(&options, "jarvis").unwrap().port(), 9100);
}

#[test]
fn an_empty_node_token_is_none() {
    let options = read("[node]\ntoken = \"\"\n", &[], Flags::default()).unwrap();
    assert_eq!(options.node.token, None);
}

#[test]
fn long_content_goes_to_the_configured_object_store() {
    let read = |file: &str, environment: &[(&str, &str)]| {
        let file = format!("[store]\nurl = \"postgres://db/q\"\n{file}");
        read(&file, environment, Flags::default()).map(|options| options.objects)
    };
    assert!(read("", &[]).unwrap().is_none());
    let folder = read("blobs = \"file:///srv/blobs\"\n", &[]).unwrap().unwrap();
    assert_eq!(
        (folder.location.to_string().as_str(), folder.limit),
        ("file:///srv/blobs", 1 << 20)
    );
    let bucket = "blobs = \"s3://b\"\nblob_limit_kib = 2\n";
    let amazon = [
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "me"),
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("AWS_SESSION_TOKEN", "soon"),
    ];
    let found = read(bucket, &amazon).unwrap().unwrap();
    let shown = format!("{found:?}");
    assert!(shown.contains("eu-west-1") && !shown.contains("hush"), "{shown}");
    let credentials = found.credentials.unwrap();
    assert_eq!((credentials.secret_key.as_str(), found.limit), ("hush", 2048));
    assert_eq!(credentials.session_token.as_deref(), Some("soon"));
    let own = format!("{bucket}s3_access_key = \"own\"\ns3_secret_key = \"s\"\n");
    let credentials = read(&own, &amazon).unwrap().unwrap().credentials.unwrap();
    assert_eq!((credentials.access_key.as_str(), credentials.session_token), ("own", None));
    let says = |file: &str, environment: &[(&str, &str)], part: &str| {
        let error = read(file, environment).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    says(bucket, &[], "store.blobs: name the region");
    says(bucket, &amazon[..1], "store.blobs needs store.s3_access_key and store.s3_secret_key");
    let half = format!("{bucket}s3_access_key = \"own\"\n");
    says(&half, &amazon, "store.s3_access_key is set, and store.s3_secret_key is not");
}

#[test]
fn long_content_needs_a_database() {
    let error = read("[store]\nblobs = \"file:///a\"\n", &[], Flags::default()).unwrap_err();
    assert!(error.contains("set store.url, too"), "{error}");
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
    assert_eq!(options.secrets, ["hush"]);
    let provider = options.providers.iter().find(|provider| provider.name == "my_llm").unwrap();
    assert_eq!(provider.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(options.data_dir.to_str(), Some("/home/me/.local/share/quintet"));
}

#[test]
fn paths_are_absolute() {
    let here = std::env::current_dir().unwrap();
    let file = "data_dir = \"data\"\n[memory]\nindex = \"index\"\n[local]\nmodels_dir = \"../m\"\n";
    let options = read(file, &[], Flags::default()).unwrap();
    assert_eq!(options.data_dir, here.join("data"));
    assert_eq!(options.memory.unwrap().settings.index, here.join("index"));
    assert_eq!(options.local.unwrap().models_dir, here.join("../m"));
    let flags = Flags { data_dir: Some(".quintet".into()), ..Flags::default() };
    assert_eq!(read("", &[], flags).unwrap().data_dir, here.join(".quintet"));
    let options = read("", &[("XDG_DATA_HOME", "share")], Flags::default()).unwrap();
    assert_eq!(options.data_dir, here.join("share/quintet"));
}

#[test]
fn there_is_always_a_default_model() {
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
fn vendors_are_built_in_and_can_be_changed() {
    let provider = |file: &str, environment: &[(&str, &str)], name: &str| {
        let options = read(file, environment, Flags::default()).unwrap();
        options.providers.into_iter().find(|provider| provider.name == name).unwrap()
    };
    let key = [("ANTHROPIC_API_KEY", "sk-ant-x")];
    let anthropic = provider("", &key, "anthropic");
    assert_eq!((anthropic.api, anthropic.api_key.is_some()), (Api::Anthropic, true));
    assert!(provider("", &[], "anthropic").api_key.is_none());
    assert_eq!(provider("", &[], "openai").api, Api::OpenAiResponses);
    let moved = provider("", &[("OPENAI_BASE_URL", "http://x/v1")], "openai");
    assert_eq!((moved.api, &*moved.base_url), (Api::OpenAiChat, "http://x/v1"));
    let file = "[providers.anthropic]\nmodels = [\"m\"]\nretries = 9\n";
    let changed = provider(file, &key, "anthropic");
    assert_eq!((changed.retries.max_retries, changed.api), (9, Api::Anthropic));
    assert!(changed.api_key.is_some() && changed.base_url.contains("anthropic.com"));
    let file = "[providers.work]\nvendor = \"mistral\"\napi_key = \"k\"\nshort_ids = false\n\
        headers = [\"X-Team: a\"]\n";
    let work = provider(file, &[], "work");
    assert_eq!((&*work.vendor, work.quirks.short_ids), ("mistral", false));
    assert_eq!(work.quirks.headers, [("X-Team".into(), "a".into())]);
    assert!(!work.quirks.stream_options);
    let says = |file: &str| read(file, &[], Flags::default()).unwrap_err();
    assert!(says("[providers.x]\nvendor = \"nobody\"").contains("is not one of"));
    assert!(says("[models]\nfallback = [\"nobody/x\"]").contains("models.fallback names"));
}

#[test]
fn a_downloaded_model_is_the_default_if_none_is_configured() {
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
fn invalid_values_are_named_with_their_source() {
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
    says("[patch_review]\nmode = \"maybe\"", &[], "patch_review.mode must be one of");
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
fn the_sandbox_is_on_by_default() {
    let sandbox = read("", &[], Flags::default()).unwrap().sandbox;
    assert_eq!((sandbox.mode, sandbox.network), (Mode::Require, false));
    assert!(sandbox.extra_read.is_empty() && sandbox.extra_write.is_empty());
    let file = "[sandbox]\nmode = \"prefer\"\nread = [\"/srv/data\", \"~\"]\n";
    let environment =
        [("QUINTET_SANDBOX_NETWORK", "true"), ("QUINTET_SANDBOX_WRITE", "~/.cache/go")];
    let sandbox = read(file, &environment, Flags::default()).unwrap().sandbox;
    assert_eq!((sandbox.mode, sandbox.network), (Mode::Prefer, true));
    assert_eq!(sandbox.extra_read, ["/srv/data", "/home/me"].map(PathBuf::from));
    assert_eq!(sandbox.extra_write, [PathBuf::from("/home/me/.cache/go")]);
    let says = |file: &str| read(file, &[], Flags::default()).unwrap_err();
    assert!(says("[sandbox]\nmode = \"on\"").contains("sandbox.mode must be one of"));
    assert!(says("[sandbox]\nread = [\"data\"]").contains("\"data\" is not an absolute path"));
}

#[test]
fn a_server_s_sandbox_is_read() {
    let file = "[mcp.servers.a]\ncommand = [\"npx\", \"~/notes\", \"~x\"]\nnetwork = false\n\
                read = [\"~/a\"]\nwrite = [\"/b/\"]\n[mcp.servers.b]\ncommand = [\"x\"]\n";
    let mut servers = read(file, &[], Flags::default()).unwrap().mcp.servers.into_iter();
    let mut next = || match servers.next().unwrap().transport {
        ToolTransport::Stdio { command, sandbox, .. } => (command, sandbox),
        ToolTransport::Http { .. } => unreachable!("both have a command"),
    };
    let (command, sandbox) = next();
    assert_eq!(command, ["npx", "/home/me/notes", "~x"]);
    let (read_paths, write) = (vec!["/home/me/a".into()], vec!["/b".into()]);
    let given = ServerSandbox { enabled: true, network: false, read: read_paths, write };
    assert_eq!(sandbox, given);
    assert_eq!(next().1, ServerSandbox::default());
    let says = |file: &str| read(file, &[], Flags::default()).unwrap_err();
    let web = "[mcp.servers.c]\nurl = \"http://x\"\nsandbox = false";
    assert!(says(web).contains("are for a server with a command"), "{}", says(web));
    let relative = "[mcp.servers.c]\ncommand = [\"x\"]\nread = [\"a\"]";
    assert!(says(relative).contains("\"a\" is not an absolute path"));
}

#[test]
fn every_key_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    let listeners = keys::listen().map(|(key, _)| key);
    let options = keys::all().map(|(key, ..)| (*key).to_owned());
    for key in listeners.chain(options) {
        let key = key.trim_end_matches(".*").replace('*', "NAME");
        let last = key.rsplit('.').next().unwrap();
        let is_about = |row: &&str| {
            let names = row.split('|').nth(1).unwrap();
            let family = names.trim().trim_matches('`').strip_suffix('…');
            names.contains(&format!("`{key}`"))
                || names.contains(&format!("`.{last}`"))
                || family.is_some_and(|family| key.starts_with(family))
                    && row.contains(&format!("`{last}`"))
        };
        assert!(rows.iter().any(is_about), "docs/configuration.md has no row for {key}");
    }
}

#[test]
fn the_nearest_key_is_similar() {
    assert_eq!(keys::nearest("datadir"), "data_dir");
    assert_eq!(keys::nearest("approval.ondeny"), "approval.on_deny");
    assert_eq!(keys::nearest("providers.fake.url"), "providers.fake.api");
    assert_eq!(keys::nearest("verify.command"), "verify.commands");
}

#[test]
fn rules_are_parsed() {
    let file = "[rules.secrets]\npath = \"**/.env\"\naction = \"refuse\"\nreason = \"no\"\n\
                [rules.tests]\ncommand = \"cargo test*\"\nkind = \"exec\"\naction = \"allow\"\n\
                [patch_review]\nmode = \"auto\"\n[context]\ntokens = 7\n";
    let options = read(file, &[], Flags::default()).unwrap();
    let rules = &options.approval.rules;
    assert_eq!((rules.len(), options.review, options.context_tokens), (2, ReviewMode::Auto, 7));
    assert_eq!((rules[0].action, rules[0].reason.as_deref()), (Action::Refuse, Some("no")));
    assert_eq!((rules[1].action, rules[1].kind), (Action::Allow, Some(ToolKind::Exec)));
}

#[test]
fn a_wrong_rule_is_named() {
    let wrong = |rule: &str| read(&format!("[rules.mine]\n{rule}"), &[], Flags::default());
    for (rule, says) in [
        ("tool = \"shell\"\n", "rules.mine.action is not set"),
        ("action = \"allow\"\n", "rules.mine fits every call"),
        ("tool = \"shell\"\naction = \"perhaps\"\n", "rules.mine.action must be one of"),
        ("kind = \"magic\"\naction = \"ask\"\n", "rules.mine.kind: there is no kind \"magic\""),
        ("paths = \"x\"\naction = \"ask\"\n", "rules.mine.path"),
    ] {
        let error = wrong(rule).unwrap_err();
        assert!(error.contains(says), "{rule}: {error}");
    }
}

#[test]
fn fetching_pages_is_off_by_default() {
    assert!(read("", &[], Flags::default()).unwrap().fetch.is_none());
    let file = "[tools]\nfetch_url = true\nfetch_private = [\"127.0.0.1:8080\", \"wiki:80\"]\n";
    assert!(read(file, &[], Flags::default()).unwrap().fetch.is_some());
    let wrong = read("[tools]\nfetch_private = [\"wiki\"]", &[], Flags::default()).unwrap_err();
    assert!(wrong.contains("tools.fetch_private: \"wiki\" is not like"), "{wrong}");
}

#[test]
fn memory_is_on_by_default_and_in_the_data_directory() {
    let memory = read("", &[], Flags::default()).unwrap().memory.unwrap();
    let index = "/home/me/.local/share/quintet/cache/memory";
    assert_eq!(memory.settings.index.to_str(), Some(index));
    assert_eq!((memory.settings.keep_days, memory.tokens, memory.save), (90, 2000, true));
    let file = "[memory]\nindex = \"/x\"\nkeep_days = 0\nexpired = \"remove\"\n";
    let memory = read(file, &[], Flags::default()).unwrap().memory.unwrap();
    assert_eq!((memory.settings.index.to_str(), memory.settings.keep_days), (Some("/x"), 0));
    assert_eq!(memory.settings.expired, quintet_memory::OnExpiry::Remove);
    assert!(read("[memory]\nenabled = false\n", &[], Flags::default()).unwrap().memory.is_none());
    let wrong = read("[memory]\nexpired = \"burn\"\n", &[], Flags::default()).unwrap_err();
    assert!(wrong.contains("memory.expired must be one of"), "{wrong}");
}

#[test]
fn the_terminal_has_its_own_socket() {
    let socket = |file: &str, environment: &[(&str, &str)]| {
        let options = read(file, environment, Flags::default());
        options.map(|options| socket_of(options, "terminal"))
    };
    let own = format!("openagent-terminal-{}.sock", std::process::id());
    let home = tempfile::tempdir().unwrap();
    let runtime = [("XDG_RUNTIME_DIR", home.path().to_str().unwrap())];
    assert_eq!(socket("", &runtime), Ok(Some(home.path().join(&own))));
    let gone = [("XDG_RUNTIME_DIR", "/nowhere/7")];
    for environment in [&gone[..], &[]] {
        assert_eq!(socket("", environment), Ok(Some(PathBuf::from("/tmp").join(&own))));
    }
    assert_eq!(socket("[listen]\nterminal = \"off\"", &runtime), Ok(None));
    let named = "[listen]\nterminal = \"/x/{pid}.sock\"";
    let path = PathBuf::from(format!("/x/{}.sock", std::process::id()));
    assert_eq!(socket(named, &runtime), Ok(Some(path)));
    let error = socket("[listen]\nterminal = \"x.sock\"", &[]).unwrap_err();
    assert!(error.contains("listen.terminal must be an absolute path"), "{error}");
}

#[test]
fn commands_attach_in_the_data_directory() {
    let socket = |file: &str| {
        read(file, &[], Flags::default())
            .map(|options| socket_of(options, quintet_dialects::EDITORS))
    };
    assert_eq!(socket("data_dir = \"/d\""), Ok(Some("/d/acp.sock".into())));
    assert_eq!(socket("[listen]\nacp = \"off\""), Ok(None));
    assert_eq!(socket("[listen]\nacp = \"/x.sock\""), Ok(Some("/x.sock".into())));
    assert!(socket("[listen]\nacp = \"x\"").unwrap_err().contains("must be an absolute path"));
}

/// The Unix socket that a protocol listens on.
fn socket_of(options: Options, protocol: &str) -> Option<PathBuf> {
    let found = options.listeners.into_iter().find(|listener| listener.spec.name == protocol);
    match found?.place {
        ListenAddress::Unix(path) => Some(path),
        ListenAddress::Tcp(_) => None,
    }
}
