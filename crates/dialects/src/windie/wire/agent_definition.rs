//! What a client makes of its agent: instructions, tools and the machine they work on.

use serde_json::{Map, Value};

use crate::windie::fields::{ENTRIES_LIMIT, Object};

const LONGEST_PROMPT: usize = 400_000;
const LONGEST_LAYER: usize = 200_000;
const LONGEST_NAME: usize = 128;
const LONGEST_TYPE: usize = 64;
const LONGEST_SYSTEM: usize = 64;
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
    pub(crate) const ALL: [Self; 3] = [Self::Manual, Self::Ocr, Self::Prediction];

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
    #[cfg(test)]
    pub(crate) fn read(value: &Value) -> Result<Self, crate::windie::fields::Wrong> {
        crate::windie::fields::read("agent_definition", value, Self::of)
    }

    pub(crate) fn of(object: &Object<'_>) -> Self {
        object.only(&MEMBERS);
        if object.member("version").is_some_and(|version| version.as_i64() != Some(1)) {
            object.wrong("version", "Input should be 1");
        }
        let modes = [
            ("default", Mode::Default),
            ("default_plus_overrides", Mode::DefaultPlusOverrides),
            ("custom", Mode::Custom),
        ];
        Self {
            id: object.text("id", 0..=LONGEST_NAME),
            name: object.text("name", 0..=LONGEST_NAME),
            mode: object.field("mode").choice(&modes).unwrap_or_default(),
            system_prompt: object.object("system_prompt").and_then(|prompt| system_prompt(&prompt)),
            tools: object.object("tools").map(|tools| tools_of(&tools)).unwrap_or_default(),
            agents_md: layers(object, "agents_md"),
            skills: layers(object, "skills"),
            prompt_layers: layers(object, "prompt_layers"),
            plugins: object.objects("plugins", ENTRIES_LIMIT, plugin),
            runtime: object.object("runtime").map(|runtime| machine(&runtime)).unwrap_or_default(),
            metadata: object.field("metadata").map(),
        }
    }
}

fn system_prompt(prompt: &Object<'_>) -> Option<String> {
    prompt.only(&["mode", "content"]);
    let replaces = prompt.field("mode").choice(&[("default", false), ("replace", true)]);
    let content = prompt.text("content", 0..=LONGEST_PROMPT);
    content.filter(|_| replaces == Some(true))
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
    let capabilities = [
        ("ocr", Capability::Ocr),
        ("vision", Capability::Vision),
        ("embeddings", Capability::Embeddings),
        ("web_search", Capability::WebSearch),
        ("browser", Capability::Browser),
    ];
    let disabled = tools.field("disabled_capabilities").choices(&capabilities);
    Tools {
        mode: tools_mode(tools),
        client_manifest: tools.member("client_manifest").cloned(),
        available_tools: tools.field("available_tools").names(),
        enabled_remote_tools: tools.field("enabled_remote_tools").names(),
        disabled_tools: tools.field("disabled_tools").names().unwrap_or_default(),
        disabled_capabilities: disabled.unwrap_or_default(),
    }
}

/// How the tools to begin with are named.
pub(crate) fn tools_mode(tools: &Object<'_>) -> ToolsMode {
    let modes = [
        ("default", ToolsMode::Default),
        ("default_plus_client", ToolsMode::DefaultPlusClient),
        ("client_only", ToolsMode::ClientOnly),
        ("explicit", ToolsMode::Explicit),
    ];
    tools.field("mode").choice(&modes).unwrap_or_default()
}

/// The layers of instructions under a name.
pub(crate) fn layers(object: &Object<'_>, name: &str) -> Vec<Layer> {
    object.objects(name, ENTRIES_LIMIT, layer)
}

fn layer(layer: &Object<'_>) -> Layer {
    layer.only(&["id", "type", "priority", "content", "revision", "source_path"]);
    let name = |name, most| layer.needed(name).identifier(most, NAME_SIGNS).unwrap_or_default();
    Layer {
        id: name("id", LONGEST_NAME),
        kind: name("type", LONGEST_TYPE),
        priority: layer.field("priority").whole(0..=1000).unwrap_or(100),
        content: layer.needed_text("content", 1..=LONGEST_LAYER),
        revision: layer.text("revision", 0..=LONGEST_PATH),
        source_path: layer.text("source_path", 0..=LONGEST_PATH),
    }
}

fn plugin(plugin: &Object<'_>) -> Plugin {
    // The JS SDK sends a plugin as its caller named it, which may be by its folder alone.
    plugin.only(&["id", "name", "version", "path", "prompt_layers", "metadata"]);
    let id = match plugin.text("path", 1..=LONGEST_PATH) {
        Some(path) => plugin.text("id", 1..=LONGEST_NAME).unwrap_or(path),
        None => plugin.needed_text("id", 1..=LONGEST_NAME),
    };
    Plugin {
        id,
        name: plugin.text("name", 0..=LONGEST_NAME),
        version: plugin.text("version", 0..=LONGEST_NAME),
        prompt_layers: layers(plugin, "prompt_layers"),
        metadata: plugin.field("metadata").map(),
    }
}

fn machine(runtime: &Object<'_>) -> Runtime {
    runtime.only(&["operating_system", "workspace_path", "coordinate_methods"]);
    let methods = Method::ALL.map(|method| (method.name(), method));
    Runtime {
        operating_system: runtime.text("operating_system", 0..=LONGEST_SYSTEM),
        workspace_path: runtime.text("workspace_path", 0..=LONGEST_PATH),
        coordinate_methods: runtime.field("coordinate_methods").choices(&methods),
    }
}

#[cfg(test)]
mod tests;
