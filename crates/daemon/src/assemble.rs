//! Builds the parts and joins them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use quintet_dialects::harness::Tree;
use quintet_kernel::policy::Rules;
use quintet_kernel::port::{Blobs, Hints, Models, Tool};
use quintet_local::{Local, weights};
use quintet_providers::Providers;
use quintet_runtime::{Pace, Parts, Runtime, SystemStamps};
use quintet_stores::DataDir;
use quintet_tools::{Settings, Toolbox};

use crate::models::Joined;
use crate::options::Options;

/// Everything that runs.
pub(crate) struct Assembly {
    pub(crate) runtime: Runtime,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) local: Option<Local>,
    pub(crate) tree: Option<Tree>,
}

/// Opens the data directory and builds everything on it.
pub(crate) fn assemble(options: &Options) -> Result<Assembly> {
    let dir = DataDir::open(&options.data_dir)?;
    let store = Arc::new(dir.sqlite()?);
    let blobs: Arc<dyn Blobs> = Arc::new(dir.blobs()?);
    let tree =
        options.session_tree.then(|| Tree::new(dir.path().join("sessions"), Arc::clone(&blobs)));
    let toolbox = toolbox(options);
    let local = options.local.clone().map(Local::new);
    let models: Arc<dyn Models> =
        Arc::new(Joined::new(local.clone(), Providers::new(options.providers.clone())));
    let runtime = Runtime::new(Parts {
        journal: store.clone(),
        leases: store.clone(),
        directory: store,
        drafts: Arc::new(dir.drafts()?),
        blobs: Arc::clone(&blobs),
        models: Arc::clone(&models),
        tools: tools(&toolbox),
        stamps: Arc::new(SystemStamps),
        rules: Arc::new(rules(options, &toolbox)),
        hints: tree.iter().map(|tree| Arc::new(tree.clone()) as Arc<dyn Hints>).collect(),
        pace: Pace::default(),
    });
    Ok(Assembly { runtime, blobs, models, local, tree })
}

/// The tools, as these options set them up.
pub(crate) fn toolbox(options: &Options) -> Toolbox {
    // The file may be replaced while the daemon runs; this name always means what is running.
    let supervisor = PathBuf::from("/proc/self/exe");
    let (verify, sandbox) = (options.verify_commands.clone(), options.sandbox.clone());
    Toolbox::new(Settings { supervisor, verify, sandbox })
}

fn tools(toolbox: &Toolbox) -> HashMap<String, Arc<dyn Tool>> {
    let tool = |name: String| Some((name.clone(), toolbox.get(&name)?));
    toolbox.specs().iter().filter_map(|spec| tool(spec.name.clone())).collect()
}

/// The rules that sessions live under.
pub(crate) fn rules(options: &Options, toolbox: &Toolbox) -> Rules {
    let profile =
        |provider: &crate::options::Provider| (provider.name.clone(), provider.profile.clone());
    let local = options.local.clone().map(|settings| {
        let profile = Local::new(settings).profile(weights::default());
        (quintet_local::PROVIDER.into(), profile)
    });
    Rules {
        approval: options.approval.clone(),
        verify: options.verify.clone(),
        limits: options.limits.clone(),
        recovery: options.recovery,
        tools: toolbox.specs(),
        default_model: options.default_model.clone(),
        providers: options.providers.iter().map(profile).chain(local).collect(),
    }
}
