//! The tools of a session: those of all its servers under their names, or an index of them.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};

use quintet_kernel::dynamic_tools::DynamicTools;
use quintet_kernel::port::Tool;

use super::index::{LISTED_LIMIT, SearchTools};
use super::name::{Named, names};
use super::pool::Pool;
use super::server::Core;
use super::tool::McpTool;
use crate::validated::ValidatedTool;

/// The tools of a session at one moment.
#[derive(Clone, Default)]
pub(super) struct OfferedTools {
    pub(super) dynamic: Arc<DynamicTools>,
    tools: HashMap<String, Arc<dyn Tool>>,
}

impl fmt::Debug for OfferedTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfferedTools").field("tools", &self.tools.len()).finish()
    }
}

impl OfferedTools {
    /// Joins the tools of servers. Where there are many, only those that were `found` are listed.
    pub(super) fn new(
        mut servers: Vec<Arc<Core>>,
        found: &BTreeSet<String>,
        connect: Option<Arc<dyn Tool>>,
        pool: Weak<Pool>,
    ) -> Self {
        servers.sort_by(|one, two| (one.name(), &one.digest).cmp(&(two.name(), &two.digest)));
        servers.dedup_by(|one, two| one.digest == two.digest);
        let lists: Vec<_> = servers.iter().map(|server| (server, server.tools())).collect();
        let all =
            || lists.iter().flat_map(|(server, list)| list.iter().map(move |tool| (*server, tool)));
        let named: Vec<Named<'_>> = all()
            .map(|(server, tool)| Named {
                server: server.name(),
                digest: &server.digest,
                tool: &tool.name,
            })
            .collect();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (name, (server, tool)) in names(&named).into_iter().zip(all()) {
            tools.push(Arc::new(McpTool::new(name, Arc::clone(server), tool)));
        }
        let mut dynamic = DynamicTools::default();
        let mut first: Vec<Arc<dyn Tool>> = connect.into_iter().collect();
        if tools.len() > LISTED_LIMIT {
            let specs = tools.iter().map(|tool| tool.spec()).collect();
            first.push(Arc::new(SearchTools::new(specs, pool)));
            let specs = tools.iter().map(|tool| tool.spec());
            (dynamic.listed, dynamic.unlisted) = specs.partition(|spec| found.contains(&spec.name));
        } else {
            dynamic.listed = tools.iter().map(|tool| tool.spec()).collect();
        }
        dynamic.listed.splice(0..0, first.iter().map(|tool| tool.spec()));
        let checked = |tool: Arc<dyn Tool>| {
            (tool.spec().name.clone(), Arc::new(ValidatedTool::new(tool)) as Arc<dyn Tool>)
        };
        let tools = first.into_iter().chain(tools).map(checked).collect();
        Self { dynamic: Arc::new(dynamic), tools }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).cloned()
    }
}
