//! What a client makes of its agent: instructions, tools and the machine they work on.

use serde_json::{Map, Value};

use super::fields::{Faults, Object, Wrong};

/// The longest instructions.
const LONGEST_PROMPT: usize = 400_000;
/// The longest layer of instructions.
const LONGEST_LAYER: usize = 200_000;
/// The longest name of an agent, a layer or a plugin.
const LONGEST_NAME: usize = 128;
/// The longest type of a layer.
const LONGEST_TYPE: usize = 64;
/// The longest name of an operating system.
const LONGEST_SYSTEM: usize = 64;
/// The longest path of a workspace.
pub(crate) const LONGEST_PATH: usize = 4096;
/// What names of layers have beside letters and digits.
const NAME_SIGNS: &str = "_.:-";

const MEMBERS: [&str; 12] = [
    "version",
    "id",
    "name",
    "mode",
    "system_prompt",
    "tools",
    "prompt_layers",
    "skills",
    "agents_md",
    "plugins",
    "runtime",
    "metadata",
];

/// What a client makes of its agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definition {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) mode: Mode,
    /// Instructions instead of ours.
    pub(crate) system_prompt: Option<String>,
    pub(crate) tools: Tools,
    pub(crate) agents_md: Vec<Layer>,
    pub(crate) skills: Vec<Layer>,
    pub(crate) prompt_layers: Vec<Layer>,
    pub(crate) plugins: Vec<Plugin>,
    pub(crate) runtime: Runtime,
    pub(crate) metadata: Map<String, Value>,
}

/// How much of the agent is the client's, in its own words; what it sends counts in every mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    #[default]
    Default,
    DefaultPlusOverrides,
    Custom,
}

/// Which tools the agent has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tools {
    pub(crate) mode: ToolsMode,
    /// The tools that the client brings, not looked at yet.
    pub(crate) client_manifest: Option<Value>,
    pub(crate) available_tools: Option<Vec<String>>,
    pub(crate) enabled_remote_tools: Option<Vec<String>>,
    pub(crate) disabled_tools: Vec<String>,
    pub(crate) disabled_capabilities: Vec<Capability>,
}

/// Which tools there are to begin with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolsMode {
    /// The built-in tools.
    Default,
    /// The built-in tools and the client's.
    #[default]
    DefaultPlusClient,
    /// The client's alone.
    ClientOnly,
    /// The tools that the client names, and its own.
    Explicit,
}

/// What a client can switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    Ocr,
    Vision,
    Embeddings,
    WebSearch,
    Browser,
}

/// A piece of instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) priority: i64,
    pub(crate) content: String,
    pub(crate) revision: Option<String>,
    pub(crate) source_path: Option<String>,
}

/// Something that adds to an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plugin {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) prompt_layers: Vec<Layer>,
    pub(crate) metadata: Map<String, Value>,
}

/// The machine that the client runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    pub(crate) operating_system: Option<String>,
    pub(crate) workspace_path: Option<String>,
    pub(crate) coordinate_methods: Option<Vec<Method>>,
}

/// How a place on the screen is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Manual,
    Ocr,
    Prediction,
}

impl Method {
    /// The word for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Ocr => "ocr",
            Self::Prediction => "prediction",
        }
    }
}

impl Definition {
    /// Reads a definition that stands alone.
    pub(crate) fn read(value: &Value) -> Result<Self, Wrong> {
        let faults = Faults::default();
        let read = Object::at("agent_definition", value, &faults).map(|object| Self::of(&object));
        faults.unless(read.unwrap_or_default())
    }

    /// Reads a definition inside something else.
    pub(crate) fn of(object: &Object<'_>) -> Self {
        object.only(&MEMBERS);
        if object.member("version").is_some_and(|version| version.as_i64() != Some(1)) {
            object.wrong("version", "Input should be 1");
        }
        Self {
            id: object.text("id", 0..=LONGEST_NAME),
            name: object.text("name", 0..=LONGEST_NAME),
            mode: mode(object),
            system_prompt: object.object("system_prompt").and_then(|prompt| system_prompt(&prompt)),
            tools: object.object("tools").map(|tools| tools_of(&tools)).unwrap_or_default(),
            agents_md: layers(object, "agents_md"),
            skills: layers(object, "skills"),
            prompt_layers: layers(object, "prompt_layers"),
            plugins: object.objects("plugins").iter().filter_map(plugin).collect(),
            runtime: object.object("runtime").map(|runtime| machine(&runtime)).unwrap_or_default(),
            metadata: metadata(object),
        }
    }
}

fn mode(object: &Object<'_>) -> Mode {
    match object.word("mode", &["default", "default_plus_overrides", "custom"]) {
        Some("default_plus_overrides") => Mode::DefaultPlusOverrides,
        Some("custom") => Mode::Custom,
        _ => Mode::Default,
    }
}

fn system_prompt(prompt: &Object<'_>) -> Option<String> {
    prompt.only(&["mode", "content"]);
    let mode = prompt.word("mode", &["default", "replace"]);
    let content = prompt.text("content", 0..=LONGEST_PROMPT);
    content.filter(|_| mode == Some("replace"))
}

fn tools_of(tools: &Object<'_>) -> Tools {
    tools.only(&[
        "mode",
        "client_manifest",
        "available_tools",
        "enabled_remote_tools",
        "disabled_tools",
        "disabled_capabilities",
    ]);
    Tools {
        mode: tools_mode(tools),
        client_manifest: tools.member("client_manifest").cloned(),
        available_tools: tools.texts("available_tools"),
        enabled_remote_tools: tools.texts("enabled_remote_tools"),
        disabled_tools: tools.texts("disabled_tools").unwrap_or_default(),
        disabled_capabilities: capabilities(tools),
    }
}

/// How the tools to begin with are named.
pub(crate) fn tools_mode(tools: &Object<'_>) -> ToolsMode {
    match tools.word("mode", &["default", "default_plus_client", "client_only", "explicit"]) {
        Some("default") => ToolsMode::Default,
        Some("client_only") => ToolsMode::ClientOnly,
        Some("explicit") => ToolsMode::Explicit,
        _ => ToolsMode::DefaultPlusClient,
    }
}

fn capabilities(tools: &Object<'_>) -> Vec<Capability> {
    let words = ["ocr", "vision", "embeddings", "web_search", "browser"];
    let named = tools.words("disabled_capabilities", &words).unwrap_or_default();
    let capability = |word: &str| match word {
        "ocr" => Capability::Ocr,
        "vision" => Capability::Vision,
        "embeddings" => Capability::Embeddings,
        "web_search" => Capability::WebSearch,
        _ => Capability::Browser,
    };
    named.into_iter().map(capability).collect()
}

/// The layers of instructions under a name.
pub(crate) fn layers(object: &Object<'_>, name: &str) -> Vec<Layer> {
    object.objects(name).iter().filter_map(layer).collect()
}

fn layer(layer: &Object<'_>) -> Option<Layer> {
    layer.only(&["id", "type", "priority", "content", "revision", "source_path"]);
    let id = layer.name("id", LONGEST_NAME, NAME_SIGNS);
    let kind = layer.name("type", LONGEST_TYPE, NAME_SIGNS);
    let priority = layer.whole("priority", 0..=1000).unwrap_or(100);
    let content = layer.needed_text("content", 1..=LONGEST_LAYER);
    let revision = layer.text("revision", 0..=LONGEST_PATH);
    let source_path = layer.text("source_path", 0..=LONGEST_PATH);
    Some(Layer { id: id?, kind: kind?, priority, content: content?, revision, source_path })
}

fn plugin(plugin: &Object<'_>) -> Option<Plugin> {
    // The JS SDK sends a plugin as its caller named it, which may be by its folder alone.
    plugin.only(&["id", "name", "version", "path", "prompt_layers", "metadata"]);
    let path = plugin.text("path", 1..=LONGEST_PATH);
    let id = match path {
        Some(path) => plugin.text("id", 1..=LONGEST_NAME).or(Some(path)),
        None => plugin.needed_text("id", 1..=LONGEST_NAME),
    };
    let name = plugin.text("name", 0..=LONGEST_NAME);
    let version = plugin.text("version", 0..=LONGEST_NAME);
    let prompt_layers = layers(plugin, "prompt_layers");
    let metadata = metadata(plugin);
    Some(Plugin { id: id?, name, version, prompt_layers, metadata })
}

fn machine(runtime: &Object<'_>) -> Runtime {
    runtime.only(&["operating_system", "workspace_path", "coordinate_methods"]);
    let methods = runtime.words("coordinate_methods", &["manual", "ocr", "prediction"]);
    let method = |word: &str| match word {
        "ocr" => Method::Ocr,
        "prediction" => Method::Prediction,
        _ => Method::Manual,
    };
    Runtime {
        operating_system: runtime.text("operating_system", 0..=LONGEST_SYSTEM),
        workspace_path: runtime.text("workspace_path", 0..=LONGEST_PATH),
        coordinate_methods: methods.map(|words| words.into_iter().map(method).collect()),
    }
}

fn metadata(object: &Object<'_>) -> Map<String, Value> {
    object.object("metadata").map(|metadata| metadata.members().clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
