//! The list of tools.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::port::{Blobs, DirectoryListing, Editors, Memory, Ocr, Tool, Workspaces};
use quintet_kernel::tool::ToolSpec;

use crate::buffers::Buffers;
use crate::directory_listing::LocalDirectories;
use crate::fetch::FetchPolicy;
use crate::memory_settings::MemorySettings;
use crate::repository_map::Mapper;
use crate::run::Runner;
use crate::sandbox::Sandbox;
use crate::search_engine::SearchEngine;
use crate::survey::Survey;
use crate::tool::apply_patch::ApplyPatch;
use crate::tool::diagram::Diagram;
use crate::tool::edit_file::EditFile;
use crate::tool::fetch_url::FetchUrl;
use crate::tool::find_files::FindFiles;
use crate::tool::git_status::GitStatus;
use crate::tool::list_dir::ListDir;
use crate::tool::look::Look;
use crate::tool::memory_get::MemoryGet;
use crate::tool::memory_search::MemorySearch;
use crate::tool::memory_write::MemoryWrite;
use crate::tool::read_file::ReadFile;
use crate::tool::repo_map::RepoMap;
use crate::tool::repo_tree::RepoTree;
use crate::tool::search::Search;
use crate::tool::shell::Shell;
use crate::tool::update_plan::UpdatePlan;
use crate::tool::verify::Verify;
use crate::tool::web_search::WebSearch;
use crate::tool::write_file::WriteFile;
use crate::undo::{Recorded, Undo};
use crate::validated::ValidatedTool;
use crate::workspaces::LocalWorkspaces;

/// What the tools need to know.
#[derive(Clone)]
pub struct Settings {
    /// The executable whose `supervise` subcommand is [`crate::supervisor::main`] and whose
    /// `confine` subcommand is [`crate::sandbox::main`].
    ///
    /// `/proc/self/exe` stays right even if the file is replaced while the daemon runs.
    pub supervisor: PathBuf,
    /// The commands of `verify`, in order. `make TARGET` is skipped if there is no such target.
    pub verify: Vec<String>,
    /// What commands may touch.
    pub sandbox: Sandbox,
    /// Which servers `fetch_url` may ask. It is not offered without.
    pub fetch: Option<FetchPolicy>,
    /// The engine of `web_search`, which is not offered without one.
    pub search: Option<SearchEngine>,
    /// A folder for what may be lost, but for calls that a crash cuts off. It need not be there.
    pub cache: PathBuf,
    /// What is remembered beyond sessions. Its tools are not offered without.
    pub recall: Option<MemorySettings>,
    /// The OCR engine of `look`, which is not offered without one.
    pub ocr: Option<Arc<dyn Ocr>>,
    /// The pictures of sessions; without it `look` reads only files in the workspace.
    pub blobs: Option<Arc<dyn Blobs>>,
    /// The editors that sessions are open in; what is not saved there wins over the disk.
    pub editors: Option<Arc<dyn Editors>>,
}

/// Every tool of the daemon.
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    survey: Survey,
    recall: Option<MemorySettings>,
    undo: Undo,
}

impl Toolbox {
    /// The tools, in the order they are offered. The environment that commands get is taken now.
    pub fn new(settings: Settings) -> Self {
        let runner = Arc::new(Runner::new(
            settings.supervisor,
            settings.sandbox,
            settings.cache.join("sandbox"),
        ));
        let mapper = Arc::new(Mapper::default());
        let survey = Survey::new(mapper.clone(), runner.clone());
        let undo = Undo::new(runner.clone(), settings.cache);
        let log = &undo.log;
        let buffers = Buffers::new(settings.editors);
        let mut tools: Vec<Arc<dyn Tool>> = vec![
            Arc::new(ReadFile::new(buffers.clone())),
            Arc::new(ListDir::new()),
            Arc::new(FindFiles::new()),
            Arc::new(RepoTree::new()),
            Arc::new(RepoMap::new(mapper)),
            Arc::new(Search::new()),
            Arc::new(GitStatus::new(runner.clone())),
            Arc::new(UpdatePlan::new()),
            Arc::new(WriteFile::new(runner.clone(), log.clone(), buffers.clone())),
            Arc::new(EditFile::new(runner.clone(), log.clone(), buffers.clone())),
            Arc::new(ApplyPatch::new(runner.clone(), log.clone(), buffers)),
            Arc::new(Recorded::new(Shell::new(runner.clone()), undo.clone())),
            Arc::new(Recorded::new(Diagram::new(runner.clone()), undo.clone())),
            Arc::new(Recorded::new(Verify::new(runner, settings.verify), undo.clone())),
        ];
        if let Some(reach) = settings.fetch {
            tools.push(Arc::new(FetchUrl::new(reach)));
        }
        if let Some(engine) = settings.search {
            tools.push(Arc::new(WebSearch::new(engine)));
        }
        if let Some(MemorySettings { memory, .. }) = &settings.recall {
            tools.push(Arc::new(MemorySearch::new(memory.clone())));
            tools.push(Arc::new(MemoryGet::new(memory.clone())));
            tools.push(Arc::new(MemoryWrite::new(memory.clone())));
        }
        if let Some(ocr) = settings.ocr {
            tools.push(Arc::new(Look::new(ocr, settings.blobs)));
        }
        let checked = |tool| Arc::new(ValidatedTool::new(tool)) as Arc<dyn Tool>;
        let tools = tools.into_iter().map(checked).collect();
        Self { tools, survey, recall: settings.recall, undo }
    }

    /// What each tool is.
    pub fn specs(&self) -> Vec<Arc<ToolSpec>> {
        self.tools.iter().map(|tool| tool.spec()).collect()
    }

    /// Where sessions work.
    pub fn workspaces(&self) -> Arc<dyn Workspaces> {
        let (survey, recall) = (self.survey.clone(), self.recall.clone());
        Arc::new(LocalWorkspaces::new(survey, recall, self.undo.clone()))
    }

    /// What is in folders.
    pub fn directory_listing(&self) -> Arc<dyn DirectoryListing> {
        Arc::new(LocalDirectories)
    }

    /// What is remembered beyond sessions, where it is on.
    pub fn memory(&self) -> Option<Arc<dyn Memory>> {
        self.recall.as_ref().map(|recall| recall.memory.clone())
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name).cloned()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Settings")
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.specs().iter().map(|spec| &spec.name)).finish()
    }
}
