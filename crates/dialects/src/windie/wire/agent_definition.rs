//! The client's definition of its agent: instructions, tools and the machine.

use serde_json::Value;

use crate::windie::fields::{ENTRIES_LIMIT, Object};

const PROMPT_LIMIT: usize = 400_000;
const LAYER_LIMIT: usize = 200_000;
const NAME_LIMIT: usize = 128;
const TYPE_LIMIT: usize = 64;
const SYSTEM_LIMIT: usize = 64;
pub(crate) const PATH_LIMIT: usize = 4096;
/// The characters in ids of layers besides letters and digits.
const NAME_SIGNS: &str = "_.:-";

const MEMBERS: &str = "version id name mode system_prompt tools prompt_layers skills agents_md plugins \
    runtime metadata";
const TOOLS_MEMBERS: &str = "mode client_manifest available_tools enabled_remote_tools disabled_tools \
    disabled_capabilities";

/// The parts of a client's agent definition that the daemon uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definition {
    pub(crate) id: Option<String>,
    /// Instructions that replace those of the daemon.
    pub(crate) system_prompt: Option<String>,
    pub(crate) tools: Tools,
    /// Additional instructions, in the order of the prompt.
    pub(crate) layers: Vec<Layer>,
    pub(crate) runtime: Runtime,
}

/// Which tools the agent has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tools {
    pub(crate) mode: ToolsMode,
    /// The tools that the client provides, not validated.
    pub(crate) client_manifest: Option<Value>,
    pub(crate) available_tools: Option<Vec<String>>,
    pub(crate) enabled_remote_tools: Option<Vec<String>>,
    pub(crate) disabled_tools: Vec<String>,
    pub(crate) disabled_capabilities: Vec<Capability>,
}

/// The tools that the selection starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolsMode {
    /// The built-in tools.
    Default,
    /// The built-in tools and the client's.
    #[default]
    DefaultPlusClient,
    /// Only the client's tools.
    ClientOnly,
    /// The tools that the client names, and its own.
    Explicit,
}

/// A capability that a client can disable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    Ocr,
    Vision,
    Embeddings,
    WebSearch,
    Browser,
}

/// Additional instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) priority: i64,
    pub(crate) content: String,
}

/// The client's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runtime {
    pub(crate) operating_system: Option<String>,
    pub(crate) workspace_path: Option<String>,
    pub(crate) coordinate_methods: Option<Vec<Method>>,
}

/// A way to find places on the screen.
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
    /// Reads a definition at the top level.
    #[cfg(test)]
    pub(crate) fn read(value: &Value) -> Result<Self, crate::windie::fields::Wrong> {
        crate::windie::fields::read("agent_definition", value, Self::of)
    }

    pub(crate) fn of(object: &Object<'_>) -> Self {
        object.only(MEMBERS);
        if object.member("version").is_some_and(|version| version.as_i64() != Some(1)) {
            object.wrong("version", "Input should be 1");
        }
        object.text("name", 0..=NAME_LIMIT);
        object
            .field("mode")
            .choice(&["default", "default_plus_overrides", "custom"].map(|word| (word, ())));
        object.field("metadata").map();
        let own = ["agents_md", "skills", "prompt_layers"].map(|name| layers(object, name));
        let plugins = object.objects("plugins", ENTRIES_LIMIT, plugin);
        let mut layers: Vec<Layer> = own.into_iter().chain(plugins).flatten().collect();
        layers.sort_by_key(|layer| layer.priority);
        Self {
            id: object.text("id", 0..=NAME_LIMIT),
            system_prompt: object.object("system_prompt").and_then(|prompt| system_prompt(&prompt)),
            tools: object.object("tools").map(|tools| tools_of(&tools)).unwrap_or_default(),
            layers,
            runtime: object.object("runtime").map(|runtime| machine(&runtime)).unwrap_or_default(),
        }
    }
}

fn system_prompt(prompt: &Object<'_>) -> Option<String> {
    prompt.only("mode content");
    let replaces = prompt.field("mode").choice(&[("default", false), ("replace", true)]);
    let content = prompt.text("content", 0..=PROMPT_LIMIT);
    content.filter(|_| replaces == Some(true))
}

fn tools_of(tools: &Object<'_>) -> Tools {
    tools.only(TOOLS_MEMBERS);
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
    layer.only("id type priority content revision source_path");
    layer.needed("id").identifier(NAME_LIMIT, NAME_SIGNS);
    layer.needed("type").identifier(TYPE_LIMIT, NAME_SIGNS);
    let read = Layer {
        priority: layer.field("priority").whole(0..=1000).unwrap_or(100),
        content: layer.needed_text("content", 1..=LAYER_LIMIT),
    };
    layer.text("revision", 0..=PATH_LIMIT);
    layer.text("source_path", 0..=PATH_LIMIT);
    read
}

fn plugin(plugin: &Object<'_>) -> Vec<Layer> {
    // The JS SDK may send a plugin with nothing but its folder.
    plugin.only("id name version path prompt_layers metadata");
    let has_path = plugin.text("path", 1..=PATH_LIMIT).is_some();
    let id = if has_path { plugin.field("id") } else { plugin.needed("id") };
    id.text(1..=NAME_LIMIT);
    plugin.text("name", 0..=NAME_LIMIT);
    plugin.text("version", 0..=NAME_LIMIT);
    plugin.field("metadata").map();
    layers(plugin, "prompt_layers")
}

fn machine(runtime: &Object<'_>) -> Runtime {
    runtime.only("operating_system workspace_path coordinate_methods");
    let methods = Method::ALL.map(|method| (method.name(), method));
    Runtime {
        operating_system: runtime.text("operating_system", 0..=SYSTEM_LIMIT),
        workspace_path: runtime.text("workspace_path", 0..=PATH_LIMIT),
        coordinate_methods: runtime.field("coordinate_methods").choices(&methods),
    }
}

#[cfg(test)]
mod tests;
