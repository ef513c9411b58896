//! The models of this machine and those of providers behind one port.

use quintet_kernel::model::{Listed, Prompt};
use quintet_kernel::port::{BoxFuture, ModelStream, Models};
use quintet_local::{Local, PROVIDER};
use quintet_providers::Providers;

/// Every model there is.
pub(crate) struct Joined {
    local: Option<Local>,
    providers: Providers,
}

impl Joined {
    pub(crate) fn new(local: Option<Local>, providers: Providers) -> Self {
        Self { local, providers }
    }
}

impl Models for Joined {
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream> {
        match &self.local {
            Some(local) if prompt.model.provider == PROVIDER => local.stream(prompt),
            _ => self.providers.stream(prompt),
        }
    }

    fn list(&self) -> BoxFuture<'_, Vec<Listed>> {
        Box::pin(async {
            let mut listed = self.providers.list().await;
            listed.extend(self.local.iter().flat_map(Local::listed));
            listed
        })
    }
}
